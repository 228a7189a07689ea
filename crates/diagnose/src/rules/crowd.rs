//! A crowd at the array, which only a scenario knows: one device holds most of what is outstanding
//! there, and what is on others, of this host or of another, waits behind it. No queue of a host is
//! short then: whatever one is given more of, the others wait for.

use std::collections::BTreeMap;

use counters::sorted::Ordered;
use levels::most_first;

use super::{Case, changes, known_wait, noisy_neighbour::MODEST_SHARE, number};
use crate::{
    ArrayFacts, ArrayUser, Cause, Device, Evidence, Facts, Finding, Flow, Object, ObjectKind,
    Party, Spell, Threshold, limit_advice, little,
};

/// Share of the commands at the array of the device that holds most of them.
const MOST: f64 = 0.5;
/// Share of its commands that a VM leaves to others when it is held below what it does.
const LEFT: f64 = 1.0 - limit_advice::BELOW;
/// VMs that are named.
const NAMED: usize = 5;

/// A device by the names of its host and its own.
type Place = (String, String);

/// What crowds an array: one device that holds most of the commands there, beside modest ones.
pub(crate) struct Crowd {
    outstanding: f64,
    at: Place,
    /// The VMs of the device that holds most, those with most first.
    holders: Vec<ArrayUser>,
    /// The VMs of modest devices by their device, those that wait longest first.
    modest: BTreeMap<Place, Vec<ArrayUser>>,
}

impl Crowd {
    /// The crowd of each array that is known, by the array's name.
    pub(crate) fn all(facts: &Facts) -> BTreeMap<String, Self> {
        let mut crowds = BTreeMap::new();
        for array in facts.devices.values().filter_map(|device| device.array.as_deref()) {
            if !crowds.contains_key(&array.name) {
                crowds.insert(array.name.clone(), Self::at(array));
            }
        }
        let known = crowds.into_iter();
        known.filter_map(|(array, crowd)| Some((array, crowd?))).into_map()
    }

    fn at(array: &ArrayFacts) -> Option<Self> {
        let same = |a: &ArrayUser, b: &ArrayUser| a.host == b.host && a.device == b.device;
        let devices: Vec<&[ArrayUser]> = array.users.chunk_by(same).collect();
        let outstanding: f64 = devices.iter().map(|users| at(users)).sum();
        let is_most = |users: &&&[ArrayUser]| at(users) >= MOST * outstanding;
        let mut holders = devices.iter().find(is_most)?.to_vec();
        most_first(&mut holders, |holder| holder.vm.slots);
        let is_modest = |users: &&[ArrayUser]| at(users) <= MODEST_SHARE * outstanding;
        let modest = devices.into_iter().filter(is_modest).filter_map(|users| {
            let mut users = users.to_vec();
            most_first(&mut users, |user| user.davg_ms());
            Some((users.first()?.place(), users))
        });
        let (at, modest) = (holders.first()?.place(), modest.into_map());
        Some(Self { outstanding, at, holders, modest })
    }

    /// The holders that are named: those that lead, and as many as it takes that what the rest has waiting could not
    /// fill the place that they leave; whether it could all the same.
    fn leaders(&self) -> (&[ArrayUser], bool) {
        let parties: Vec<Party> = self.holders.iter().map(|user| user.vm.clone()).collect();
        let fills = |count: usize| {
            let (limited, rest) = parties.split_at(count);
            let waiting: f64 = rest.iter().filter_map(|vm| vm.waiting).sum();
            waiting >= LEFT * limited.iter().map(|vm| vm.slots).sum::<f64>()
        };
        let most = parties.len().min(NAMED);
        let leading = super::leading(&parties).min(most);
        let count = (leading..most).find(|count| !fills(*count)).unwrap_or(most);
        (&self.holders[..count], fills(count))
    }
}

/// A device that is part of a crowd, on whichever side.
pub(super) struct Crowded<'a> {
    device: &'a Device<'a>,
    array: &'a ArrayFacts,
    crowd: &'a Crowd,
    /// When commands meet others at the array.
    spell: Spell,
    /// What a command takes there that waits for nobody.
    alone_ms: f64,
    /// From when on the wait for others counts.
    slow_ms: f64,
}

impl<'a> Crowded<'a> {
    pub(super) fn of(case: &'a Case<'_>, device: &'a Device<'a>) -> Option<Self> {
        let array = case.array(device)?;
        let crowd = case.crowds.get(&array.name)?;
        let alone_ms = array.service_ms?;
        let slow_ms = alone_ms + device.limits.get(Threshold::QosMs);
        let crowded: Vec<usize> = array.crowded().collect();
        let spell = Spell::any(&device.busy, |sample| crowded.binary_search(&sample).is_ok())?;
        if array.own_work(&spell.samples).is_some() {
            return None;
        }
        let place = (case.host.name.to_owned(), device.flow.name.to_owned());
        let this = Self { device, array, crowd, spell, alone_ms, slow_ms };
        let wait = |users: &Vec<ArrayUser>| users.iter().any(|user| this.waits(user));
        let is_part = match crowd.at == place {
            true => crowd.modest.values().any(wait),
            false => crowd.modest.get(&place).is_some_and(wait),
        };
        let ms = case.array_ms(device, &this.spell.samples)?;
        (is_part && this.is_long(ms)).then_some(this)
    }

    /// Whether the finding about the array names who waits on this device: it is found on the device
    /// of the same host that holds most of the commands.
    pub(super) fn is_told_elsewhere(&self, case: &Case<'_>) -> bool {
        let (host, device) = &self.crowd.at;
        *host == case.host.name && device != self.device.flow.name
    }

    /// Whether most of so many milliseconds of a command at the array is wait for others, and that counts.
    fn is_long(&self, ms: f64) -> bool {
        self.array.is_crowded(&self.spell.samples, ms) && ms >= self.slow_ms
    }

    /// Whether a VM waits for others. Who waits for a policy of its own does as much whatever the
    /// others do: what the array saves it, the policy takes.
    fn waits(&self, user: &ArrayUser) -> bool {
        let davg_ms = user.davg_ms();
        self.is_long(davg_ms) && user.policy_wait_ms < known_wait::COUNTS * davg_ms
    }

    /// The finding about it, seen from the device.
    pub(super) fn judge(&self, case: &Case<'_>) -> Option<Finding> {
        let Self { device, array, crowd, spell, alone_ms, .. } = self;
        let (outstanding, holders) = (crowd.outstanding, &crowd.holders);
        let of = |users: &'a [ArrayUser]| users.iter().filter(|user| self.waits(user));
        let place = (case.host.name.to_owned(), device.flow.name.to_owned());
        let mine = crowd.modest.get(&place).map(Vec::as_slice);
        let waiting: Vec<&ArrayUser> = match mine {
            Some(mine) => of(mine).collect(),
            None => crowd.modest.values().flat_map(|users| of(users)).collect(),
        };
        let longest = |a: &&&ArrayUser, b: &&&ArrayUser| a.davg_ms().total_cmp(&b.davg_ms());
        let worst = waiting.iter().max_by(longest)?;
        let (leaders, is_in_vain) = crowd.leaders();
        let rest = if leaders.len() < holders.len() { " and others on its device" } else { "" };
        let names = |name: &dyn Fn(&ArrayUser) -> String| {
            leaders.iter().map(name).collect::<Vec<_>>().join(", ")
        };
        let whole = || Object { kind: ObjectKind::Array, name: array.name.clone() };
        let object = mine.map_or_else(whole, |_| device.object());
        let mut finding = case.finding(Cause::ArraySlow, object, spell);
        let named = |user: &ArrayUser| user.named(case.host.name);
        finding.sentence = format!(
            "A command of {} takes {} ms at array {} and {} ms when it is alone there: {} of the {} \
             commands at the array are of {}{}, and it works {} % of the time.",
            named(worst),
            number(worst.davg_ms()),
            array.name,
            number(*alone_ms),
            number(at(holders)),
            number(outstanding),
            names(&named),
            rest,
            number(100.0 * array.work(&spell.samples))
        );
        let wait_ms = device.flow.per_command(&spell.samples, Flow::davg)? - alone_ms;
        finding.standing = little(device.flow.mean_rate(&spell.samples)?, wait_ms);
        let work = 100.0 * array.work(&spell.samples);
        finding.evidence = vec![
            Evidence::new(format!("commands at array {}", array.name), outstanding, ""),
            Evidence::new("of them from the device that has most", at(holders), ""),
            Evidence::new(format!("work of array {}", array.name), work, "%"),
            Evidence::new("a command that waits for nobody", *alone_ms, "ms"),
            Evidence::new(format!("the same of {}", named(worst)), worst.davg_ms(), "ms"),
        ];
        finding.confidence = 0.95;
        let party = |user: &ArrayUser| Party { name: named(user), ..user.vm.clone() };
        finding.sufferers = waiting.into_iter().map(party).collect();
        finding.causers = leaders.iter().map(party).collect();
        self.advise(case, (leaders, is_in_vain), &mut finding);
        Some(finding)
    }

    /// What is to be done about those that have most of the commands, and what not.
    fn advise(
        &self,
        case: &Case<'_>,
        (leaders, is_in_vain): (&[ArrayUser], bool),
        finding: &mut Finding,
    ) {
        let vms: Vec<&Party> = leaders.iter().map(|user| &user.vm).collect();
        let size_kib = leaders.first().and_then(|user| user.size_kib);
        let whose = vms.iter().map(|vm| &*vm.name).collect::<Vec<_>>().join(", ");
        // Below what somebody sends at a rate of its own a limit has no equilibrium.
        let gets =
            |user: &&ArrayUser| limit_advice::gets_what_it_asks(user.vm.iops, user.asks_iops);
        let asks = leaders.iter().find(gets);
        let (on, device) = &self.crowd.at;
        let host = case.hosts.iter().find(|host| host.name == on).unwrap_or(case.host);
        let devices = host.devices.iter().filter(|of| of.flow.name == device).collect();
        let at = limit_advice::Place { host, devices, samples: &self.spell.samples };
        let limit = limit_advice::hold(&at, &vms, size_kib, case.facts)
            .filter(|_| asks.is_none() && !is_in_vain);
        let moved = changes::look(
            format!("Move {whose} to another array, or give this one more (disks, controllers)."),
            Vec::new(),
        )
        .risking("Moving disks loads both arrays.", "Move them back");
        finding.changes = limit.into_iter().chain([moved]).collect();
        finding.do_not.extend(asks.map(|user| {
            format!(
                "Do not hold {whose} below {} I/Os a second: {} sends them whatever is answered, and what waits \
                 grows without end.",
                number(user.vm.iops),
                user.vm.name
            )
        }));
        finding.do_not.push(format!(
            "Do not raise queue depths on any host of array {}: what one gains there the others \
             wait for.",
            self.array.name
        ));
    }
}

/// Commands at the array.
fn at(users: &[ArrayUser]) -> f64 {
    users.iter().map(|user| user.vm.slots).sum()
}

impl ArrayUser {
    /// Mean time of a command below the host.
    fn davg_ms(&self) -> f64 {
        1000.0 * self.vm.slots / self.vm.iops
    }

    fn place(&self) -> Place {
        (self.host.clone(), self.device.clone())
    }

    /// The VM, with its host where that is another one.
    fn named(&self, host: &str) -> String {
        match self.host == host {
            true => self.vm.name.clone(),
            false => format!("{} of {}", self.vm.name, self.host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Crowd;
    use crate::{ArrayFacts, ArrayUser, DeviceFacts, Facts, Party};

    /// The VMs that a limit is for, and whether it is in vain: by name, commands at the array and commands that wait.
    fn leaders(vms: &[(&str, f64, f64)]) -> (Vec<String>, bool) {
        let user = |name: &str, device: &str, slots: f64, waiting: f64| ArrayUser {
            host: "h".into(),
            device: device.into(),
            vm: Party {
                name: name.into(),
                iops: 100.0,
                gavg_ms: Some(10.0 * (slots + waiting)),
                slots,
                waiting: Some(waiting),
            },
            size_kib: None,
            policy_wait_ms: 0.0,
            asks_iops: None,
        };
        let holders =
            vms.iter().map(|(name, slots, waiting)| user(name, "naa.1", *slots, *waiting));
        let users = holders.chain([user("quiet", "naa.2", 0.5, 0.0)]).collect();
        let array = ArrayFacts { name: "box".into(), users, ..ArrayFacts::default() };
        let known = DeviceFacts { array: Some(array.into()), ..DeviceFacts::default() };
        let facts = Facts { devices: [("naa.1".into(), known)].into(), ..Facts::default() };
        let crowds = Crowd::all(&facts);
        let (leaders, is_in_vain) = crowds["box"].leaders();
        (leaders.iter().map(|user| user.vm.name.clone()).collect(), is_in_vain)
    }

    #[test]
    fn who_would_fill_the_place_of_a_limited_vm_is_limited_with_it() {
        let one = ["hog".to_owned()];
        assert_eq!(leaders(&[("hog", 20.0, 30.0), ("other", 12.0, 0.1)]), (one.to_vec(), false));
        let both = ["hog", "other"].map(str::to_owned);
        assert_eq!(leaders(&[("hog", 20.0, 30.0), ("other", 12.0, 19.0)]), (both.to_vec(), false));
        let many: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"].map(|name| (name, 4.0, 9.0)).into();
        assert!(leaders(&many).1, "more wait than are named");
    }
}
