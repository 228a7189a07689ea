//! What a page carries with it: style and script of our own, and the chart library.
//!
//! The page's policy allows these texts alone, by their SHA-256: a name that became a script or a
//! style, whatever it escaped from, would not run.

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

use crate::packed::Packed;

/// Everything in the directory of assets.
static FILES: Packed = Packed::new(include_bytes!(concat!(env!("OUT_DIR"), "/assets")));

/// Style sheets, in the order of the page.
pub(super) fn styles() -> [&'static str; 2] {
    ["uplot/uPlot.min.css", "report.css"].map(text)
}

/// Scripts, in the order of the page.
pub(super) fn scripts() -> [&'static str; 2] {
    ["uplot/uPlot.iife.min.js", "report.js"].map(text)
}

fn text(name: &str) -> &'static str {
    let file = FILES.files().find(|(file, _)| *file == name);
    file.expect("a file of the directory of assets").1
}

/// The Content Security Policy: nothing from anywhere, and no script or style but ours.
pub(super) fn policy() -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hashes(&scripts()),
        hashes(&styles())
    )
}

fn hashes(texts: &[&str]) -> String {
    let hash = |text: &&str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    texts.iter().map(hash).collect::<Vec<_>>().join(" ")
}
