//! What hosts are to be set to where they are not as most of them are, or as one is: for depths, and for all else.

use knobs::{DSNRO, Knob, VendorAdvice};

use super::{
    difference::{Difference, Value},
    fleet::Fleet,
    vendors,
};

/// What a host is to be set to, whether it is already or not; of one thing the last counts.
#[derive(Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) knobs: Vec<Knob>,
    /// What most hosts have and it is not set to, with the reason.
    pub(crate) left: Vec<(Knob, String)>,
}

/// What a host is to be set to as others are.
pub(super) struct Goal {
    /// Its place among the hosts.
    pub(super) host: usize,
    pub(super) knob: Knob,
    /// Why it is not.
    pub(super) left: Option<String>,
}

impl Wanted {
    pub(super) fn add(&mut self, goal: Goal) {
        match goal.left {
            None => self.knobs.push(goal.knob),
            Some(why) => self.left.push((goal.knob, why)),
        }
    }
}

/// What those hosts are to be set to that differ from most of them, or from the one that all are to be like.
pub(super) fn goals(fleet: &Fleet, one: &Difference, like: Option<usize>) -> Vec<Goal> {
    let of_host = |place: usize| {
        let own = one.values.iter().find(|(_, hosts)| hosts.contains(&(place as u32)));
        own.map(|(value, _)| *value)
    };
    let model = like.map_or_else(|| one.majority(), of_host);
    let Some((model, knob)) = model.and_then(|model| Some((model, model.knob()?))) else {
        return Vec::new();
    };
    let said = if like.is_none() { vendors::said(fleet, one, knob) } else { Vec::new() };
    let others = one.values.iter().filter(|(value, _)| *value != model);
    let goals = others.flat_map(|(own, hosts)| {
        let left = if like.is_none() { why_left(own, &model, &said) } else { None };
        hosts.iter().map(move |host| Goal { host: *host as usize, knob, left: left.clone() })
    });
    goals.collect()
}

/// Why a host is left as it is where most have something else.
fn why_left(own: &Value, most: &Value, said: &[(&VendorAdvice, Knob)]) -> Option<String> {
    let is_away = |said: &Knob| {
        let [own, most] = [own, most].map(|value| value.knob().map_or(0, vendors::number));
        let said = vendors::number(*said);
        most.abs_diff(said) > own.abs_diff(said)
    };
    if let Some((advice, said)) = said.iter().find(|(_, said)| is_away(said)) {
        return Some(format!(
            "{}: its vendor says {} [{}], from which most hosts are farther; left as it is without --set or \
             --like",
            advice.array,
            Value::Set(*said).text(),
            advice.source
        ));
    }
    // Of what is no more than DSNRO nobody knows what it is.
    let is_dsnro = matches!(most, Value::Dqlen(_, depth) if *depth <= DSNRO.default);
    let why = "where several VMs compete all the time a capture shows DSNRO, and this may be that; left as it \
               is without --set or --like";
    is_dsnro.then(|| why.into())
}
