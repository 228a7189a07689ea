//! The comparison as JSON, in the shape of `docs/reference/json.md`.

use serde_json::{Value as Json, json};

use super::{Advised, Comparison, difference::Value, scripts::by_time};

/// The version of that shape.
const VERSION: u32 = 1;

/// All of it.
pub(crate) fn render(comparison: &Comparison) -> Json {
    let fleet = &comparison.fleet;
    let host = |place: &u32| fleet.hosts[*place as usize].name.as_str();
    let name = |value: &Value| value.device().map(|id| fleet.name_of(id));
    let hosts = fleet.hosts.iter().map(|host| {
        json!({
            "host": host.name,
            "esxi": host.version.map(knobs::Version::name),
            "release": host.release,
            "drivers": host.drivers.iter().map(|own| own.driver.module).collect::<Vec<_>>(),
            "devices": host.devices.len(),
        })
    });
    let differences = comparison.differences.iter().map(|one| {
        let values = one.values.iter().map(|(value, hosts)| {
            json!({ "value": value.text(), "hosts": hosts.iter().map(host).collect::<Vec<_>>() })
        });
        let first = &one.values[0].0;
        json!({
            "kind": first.kind(),
            "setting": first.what(),
            "device": name(first),
            "majority": one.majority().map(|value| value.text()),
            "values": values.collect::<Vec<_>>(),
        })
    });
    let uneven = comparison.uneven.iter().map(|one| {
        let values = one.values.iter().map(|(value, ids)| {
            let ids = ids.iter().map(|id| fleet.name_of(*id));
            json!({ "value": value.text(), "devices": ids.collect::<Vec<_>>() })
        });
        let first = &one.values[0].0;
        json!({
            "array": one.array,
            "kind": first.kind(),
            "setting": first.what(),
            "values": values.collect::<Vec<_>>(),
        })
    });
    let untold = comparison.untold.iter().map(|one| {
        json!({
            "kind": one.value.kind(),
            "setting": one.value.what(),
            "value": one.value.text(),
            "default": one.default,
            "hosts": one.hosts.iter().map(host).collect::<Vec<_>>(),
            "silent": one.silent.iter().map(host).collect::<Vec<_>>(),
        })
    });
    let plans = comparison.plans.iter().map(|plan| {
        let refused = plan.refused.iter().map(|refused| {
            let device = refused.device.map(|id| fleet.name_of(id));
            json!({ "line": refused.line, "device": device, "why": refused.why })
        });
        json!({
            "host": host(&plan.host),
            "plan": by_time(&plan.plan),
            "undo": by_time(&plan.undo),
            "not_undone": plan.not_undone,
            "refused": refused.collect::<Vec<_>>(),
        })
    });
    json!({
        "version": VERSION,
        "hosts": hosts.collect::<Vec<_>>(),
        "differences": differences.collect::<Vec<_>>(),
        "uneven": uneven.collect::<Vec<_>>(),
        "untold": untold.collect::<Vec<_>>(),
        "vendors": comparison.advised.iter().flat_map(vendors).collect::<Vec<_>>(),
        "plans": plans.collect::<Vec<_>>(),
    })
}

/// What the vendor of an array says, each setting by itself.
fn vendors(one: &Advised) -> impl Iterator<Item = Json> {
    // The number that DSNRO is; `null` of all else.
    let dsnro = |said: &Value, text: &str| -> Json {
        let number = || text.parse::<u32>().ok();
        (said.kind() == "dsnro").then(number).flatten().into()
    };
    one.said.iter().map(move |said| {
        let (value, text) = (&said.value, said.value.text());
        let is = said.is.iter().map(
            |(is, devices)| json!({ "value": is, "dsnro": dsnro(value, is), "devices": devices }),
        );
        json!({
            "array": one.advice.array,
            "kind": value.kind(),
            "setting": value.what(),
            "dsnro": dsnro(value, &text),
            "value": text,
            "source": one.advice.source,
            "is": is.collect::<Vec<_>>(),
            "names": one.names,
            "lines": one.lines,
            "bound": one.bound,
        })
    })
}
