//! Fuzz target: see `control` in the shared library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kavg_fuzz::control(bytes));
