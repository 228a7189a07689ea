//! Fuzz target: see `knob_line` in the shared library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kavg_fuzz::knob_line(bytes));
