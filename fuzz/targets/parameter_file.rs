//! Fuzz target: see `parameter_file` in the shared library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kavg_fuzz::parameter_file(bytes));
