//! Fuzz target: see `vhost_user` in the shared library.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kavg_fuzz::vhost_user(bytes));
