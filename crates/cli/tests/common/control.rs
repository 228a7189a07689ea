//! A client of the control socket as a program of somebody else would be: lines of JSON.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
};

use serde_json::Value;

use crate::daemon::Site;

/// A connection to the control socket `c`.
pub(crate) struct Control(BufReader<UnixStream>);

impl Control {
    pub(crate) fn on(site: &Site) -> Self {
        Self(BufReader::new(UnixStream::connect(site.path("c")).expect("the daemon listens")))
    }

    /// What is answered to a line.
    pub(crate) fn say(&mut self, line: &str) -> Value {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).expect("the daemon reads");
        let mut answer = String::new();
        self.0.read_line(&mut answer).expect("the daemon answers");
        serde_json::from_str(&answer).expect("it is JSON")
    }

    pub(crate) fn counters(&mut self) -> Value {
        self.say(r#"{"version":1,"ask":"counters"}"#)
    }

    /// What the host is made of and set to.
    pub(crate) fn state(&mut self) -> Value {
        self.say(r#"{"version":1,"ask":"state"}"#)["state"].take()
    }
}

/// The place of a column in the rows of a layout.
pub(crate) fn column(layout: &Value, name: &str, key: &str) -> usize {
    let is_it = |column: &Value| {
        let object = &layout["objects"][column[0].as_u64().unwrap() as usize];
        object["name"] == name && column[1] == key
    };
    layout["columns"].as_array().unwrap().iter().position(is_it).expect("such a column")
}
