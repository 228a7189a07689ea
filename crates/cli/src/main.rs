//! The binary `kavg`. All of it is in the library beside it, so that what is handed out can be linked
//! for speed and yet have a command line that is compiled for size (`cargo xtask dist`).

use std::process::ExitCode;

fn main() -> ExitCode {
    kavg::main()
}
