//! Outputs of esxcli that are given beside captures, and of which host each is: no output says that. Of one
//! host all are; of several each has its host in front, or is called as that, as `kavg settings` has it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use capture::{Esxcli, parse_outputs, read_output};
use clap::builder::{OsStringValueParser, TypedValueParser};
use counters::sorted::sort;
use diagnose::Facts;
use levels::Measured;

use crate::{Result, facts, settings::host_of, text::clean};

/// A file, and the host that is said in front of it.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    host: Option<String>,
    pub(crate) path: PathBuf,
}

impl Given {
    /// Reads `FILE` or `HOST: FILE`.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().map(Self::of)
    }

    /// What is a file is none with a host in front, whatever its name.
    fn of(argument: OsString) -> Self {
        let path = PathBuf::from(argument);
        let parts = path.to_str().filter(|_| !path.exists()).and_then(|text| text.split_once(':'));
        match parts.filter(|(host, _)| !host.contains(['/', '\\'])) {
            Some((host, file)) => {
                Self { host: Some(host.trim().into()), path: file.trim_start().into() }
            }
            None => Self { host: None, path },
        }
    }

    /// The place of its host among those that are captured; `None` is all of them.
    fn whose(&self, outputs: &[Esxcli], hosts: &[&str]) -> Result<Option<usize>> {
        let place =
            |name: &str| hosts.iter().position(|host| host.eq_ignore_ascii_case(name.trim()));
        let name = clean(&self.path.display().to_string());
        let all = clean(&hosts.join(", "));
        if let Some(host) = &self.host {
            let why = || format!("--esxcli {}:{name}: the captures are of {all}", clean(host));
            return Ok(Some(place(host).ok_or_else(why)?));
        }
        // Hosts call a datastore alike.
        let is_of_all = outputs.iter().all(|output| matches!(output, Esxcli::Extents(_)));
        if hosts.len() < 2 || is_of_all {
            return Ok(None);
        }
        let called = [Some(self.path.as_path()), self.path.parent()];
        let found = called.into_iter().flatten().find_map(|path: &Path| place(&host_of(path)));
        let why = || {
            let first = clean(hosts.first().unwrap_or(&""));
            format!(
                "{name}: an output of esxcli does not say of which host it is, and the captures are of {all}: \
                 put the host in front (--esxcli {first}:{name}), or call the file as its host ({first}.txt)"
            )
        };
        Ok(Some(found.ok_or_else(why)?))
    }
}

/// What the files say.
pub(crate) struct Told(Vec<(Given, Vec<Esxcli>)>);

impl Told {
    /// Reads the files, whichever of the known commands each is of.
    pub(crate) fn read(given: &[Given]) -> Result<Self> {
        let read = |file: &Given| {
            let name = file.path.display().to_string();
            Ok((file.clone(), parse_outputs(&name, &read_output(&file.path)?)?))
        };
        Ok(Self(given.iter().map(read).collect::<Result<_>>()?))
    }

    /// What they say of each of the hosts of these recordings, which may have several of one.
    ///
    /// # Errors
    /// One line: of which host a file is nobody says, or two contradict each other.
    pub(crate) fn of<'a>(&self, recordings: impl Iterator<Item = &'a Measured>) -> Result<OfHosts> {
        let mut hosts: Vec<&str> = recordings.map(|recording| recording.host.as_str()).collect();
        sort(&mut hosts);
        hosts.dedup();
        let mut known = vec![Facts::default(); hosts.len()];
        for (file, outputs) in &self.0 {
            let whose = file.whose(outputs, &hosts)?;
            let own = known.iter_mut().enumerate();
            for (_, facts) in own.filter(|(place, _)| whose.is_none_or(|whose| whose == *place)) {
                for output in outputs {
                    let name = file.path.display();
                    facts::add(facts, output.clone()).map_err(|what| format!("{name}: {what}"))?;
                }
            }
        }
        Ok(OfHosts(hosts.into_iter().map(String::from).zip(known).collect()))
    }
}

/// What is known of each host.
pub(crate) struct OfHosts(BTreeMap<String, Facts>);

impl OfHosts {
    /// Of each of these recordings what is known of its host.
    pub(crate) fn each(&self, recordings: &[Measured]) -> Vec<Facts> {
        let known = |recording: &Measured| self.0.get(&recording.host).cloned();
        recordings.iter().map(|recording| known(recording).unwrap_or_default()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_of_the_host_in_front_of_it_or_of_its_name() {
        let depth = [Esxcli::Version("8.0.3".into())];
        let names = [Esxcli::Extents(Vec::new())];
        let whose = |argument: &str, outputs: &[Esxcli], hosts: &[&str]| {
            let whose = Given::of(argument.into()).whose(outputs, hosts);
            whose.map_err(|error| error.to_string())
        };
        let two = ["esx1.lab", "esx2.lab"];
        let cases = [
            ("esx2.lab: out.txt", Some(1)),
            ("ESX2.LAB:out.txt", Some(1)),
            ("nowhere/esx1.lab.txt.gz", Some(0)),
            ("esx2.lab/device-list.txt", Some(1)),
            // The host in front goes before the name.
            ("esx2.lab:esx1.lab.txt", Some(1)),
        ];
        for (argument, expected) in cases {
            assert_eq!(whose(argument, &depth, &two), Ok(expected), "{argument}");
        }
        assert_eq!(whose("out.txt", &depth, &two[..1]), Ok(None));
        assert_eq!(whose("out.txt", &names, &two), Ok(None));
        let refused = [
            ("out.txt", "out.txt: an output of esxcli does not say of which host it is"),
            ("esx3.lab.txt", "put the host in front (--esxcli esx1.lab:esx3.lab.txt)"),
            (
                "esx3.lab:out.txt",
                "--esxcli esx3.lab:out.txt: the captures are of esx1.lab, esx2.lab",
            ),
        ];
        for (argument, expected) in refused {
            let refusal = whose(argument, &depth, &two).unwrap_err();
            assert!(refusal.contains(expected), "{refusal}");
        }
        assert_eq!(Given::of("esx2: dir/out.txt".into()).path, Path::new("dir/out.txt"));
    }
}
