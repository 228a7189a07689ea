//! Fuzz target: see `writer` in the shared library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kavg_fuzz::writer(bytes));
