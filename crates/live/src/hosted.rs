//! A host at work: what is known of it beside the threads that work.

use std::{
    path::PathBuf,
    sync::{Arc, mpsc::Sender},
};

use counters::Time;
use engine::{Engine, HostConfig, Input};
use scenario::Host;

use crate::{
    counted::Counted,
    folders::Folders,
    ids::Ids,
    nbd::Door,
    served::{Opened, Part},
};

/// A host at work. Engines know its parts by ids of their own.
#[derive(Clone, Debug)]
pub(crate) struct Hosted {
    pub(crate) counted: Arc<Counted>,
    /// What each component's is, as far as settings and paths go.
    pub(crate) engine: Engine,
    /// By path of the file.
    pub(crate) up: Vec<bool>,
    pub(crate) ids: Ids,
    /// All that it was ever made of, as engines number it.
    pub(crate) known: Arc<HostConfig>,
    /// What is open of it.
    pub(crate) opened: Opened,
    /// Where clients find it.
    pub(crate) door: Door,
    /// By component the way on which disks come to it.
    pub(crate) ways: Vec<Sender<Part>>,
}

/// Where all of it comes from.
#[derive(Debug)]
pub(crate) struct Home {
    /// The name of the file, for refusals.
    pub(crate) file: String,
    /// Where names of files begin that are not absolute.
    pub(crate) base: PathBuf,
    /// Where there may be what was not there at the start.
    pub(crate) folders: Folders,
}

/// Tells an engine without I/O.
pub(crate) fn tell(
    engine: &mut Engine,
    host: &Host,
    ids: &Ids,
    input: Input,
) -> Result<(), String> {
    let told = engine.handle_input(Time::ZERO, ids.input(input));
    told.map_err(|error| match ids.error(&error) {
        Some(of_file) => host.refusal(&of_file),
        None => error.to_string(),
    })?;
    while engine.poll_output().is_some() {}
    Ok(())
}
