//! The ranking as JSON, in the shape of `docs/reference/json.md`.

use serde_json::{Value, json};

use crate::{
    json::{VERSION, seconds},
    sweep::Job,
};

use super::{
    candidate::Refused,
    case::Case,
    original::Original,
    ranking::{Figure, Figures, Ranked, Ranking},
};

/// All of it.
pub(crate) fn render(case: &Case, job: &Job, ranking: &Ranking, refused: &[Refused]) -> Value {
    let scenario = &case.scenario;
    let own = &scenario.windows[case.window];
    let (name, from_s, to_s) = match &case.original {
        Some(Original { name, window, .. }) => {
            (name, window.from_ms as f64 / 1000.0, window.to_ms as f64 / 1000.0)
        }
        None => (&scenario.name, seconds(own.from), seconds(own.to)),
    };
    let doubts = case.original.as_ref().map_or(&[][..], |original| &original.doubts);
    let refused =
        refused.iter().map(|one| json!({ "key": one.key, "what": one.what, "why": one.why }));
    json!({
        "version": VERSION,
        "scenario": name,
        "title": scenario.title,
        "source": scenario.source,
        "seeds": job.seeds,
        "window": {
            "name": own.name,
            "from_s": from_s,
            "to_s": to_s,
        },
        "readings": ranking.scenarios,
        "alike": ranking.alike,
        "doubts": doubts,
        "good": case.called(&case.good),
        "bad": case.called(&case.bad),
        "diagnosed": case.is_diagnosed,
        "as_it_is": figures(&ranking.as_it_is),
        "remedies": ranking.remedies.iter().map(|one| ranked(case, one)).collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    })
}

/// The same of a recorded host of which nothing is wrong.
pub(crate) fn render_nothing(host: &str, headline: &str) -> Value {
    json!({
        "version": VERSION,
        "scenario": host,
        "title": headline,
        "source": "",
        "seeds": [],
        "window": null,
        "readings": 0,
        "alike": null,
        "doubts": [],
        "good": null,
        "bad": null,
        "diagnosed": true,
        "as_it_is": null,
        "remedies": [],
        "refused": [],
    })
}

fn ranked(case: &Case, ranked: &Ranked) -> Value {
    let remedy = &ranked.remedy;
    json!({
        "place": ranked.place,
        "key": remedy.key,
        "what": remedy.what,
        "effect": remedy.effect().key(),
        "commands": remedy.commands(case),
        "by_hand": remedy.by_hand,
        "figures": figures(&ranked.figures),
        "gain": ranked.gain,
        "loss": ranked.loss,
    })
}

fn figures(figures: &Figures) -> Value {
    json!({
        "good_ms": Figure::json(figures.good_ms),
        "good_iops": Figure::json(figures.good_iops),
        "bad_iops": Figure::json(figures.bad_iops),
        "bad_mib_per_s": Figure::json(figures.bad_mib),
        "fairness": Figure::json(figures.fairness),
    })
}
