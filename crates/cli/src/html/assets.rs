//! What a page carries with it: style and script of our own, and the chart library.
//!
//! The page's policy allows these texts alone, by their SHA-256: a name that became a script or a
//! style, whatever it escaped from, would not run.

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

/// Style sheets, in the order of the page.
pub(super) const STYLES: [&str; 2] =
    [include_str!("../../assets/uplot/uPlot.min.css"), include_str!("../../assets/report.css")];

/// Scripts, in the order of the page.
pub(super) const SCRIPTS: [&str; 2] =
    [include_str!("../../assets/uplot/uPlot.iife.min.js"), include_str!("../../assets/report.js")];

/// The Content Security Policy: nothing from anywhere, and no script or style but ours.
pub(super) fn policy() -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        hashes(&SCRIPTS),
        hashes(&STYLES)
    )
}

fn hashes(texts: &[&str]) -> String {
    let hash = |text: &&str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    texts.iter().map(hash).collect::<Vec<_>>().join(" ")
}
