//! The binary `kavg`.
fn main() {}
