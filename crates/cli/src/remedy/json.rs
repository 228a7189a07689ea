//! The ranking as JSON, in the shape of `docs/reference/json.md`.

use serde_json::{Value, json};

use crate::{
    json::{VERSION, seconds},
    spread::Spread,
    sweep::Job,
};

use super::{
    candidates::Refused,
    case::Case,
    ranking::{Figures, Ranked, Ranking},
};

/// All of it.
pub(crate) fn render(case: &Case, job: &Job, ranking: &Ranking, refused: &[Refused]) -> Value {
    let (scenario, window) = (&case.scenario, &case.scenario.windows[case.window]);
    let refused =
        refused.iter().map(|one| json!({ "key": one.key, "what": one.what, "why": one.why }));
    json!({
        "version": VERSION,
        "scenario": scenario.name,
        "title": scenario.title,
        "source": scenario.source,
        "seeds": job.seeds,
        "window": {
            "name": window.name,
            "from_s": seconds(window.from),
            "to_s": seconds(window.to),
        },
        "good": case.good,
        "bad": case.bad,
        "diagnosed": case.is_diagnosed,
        "as_it_is": figures(&ranking.as_it_is),
        "remedies": ranking.remedies.iter().map(ranked).collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    })
}

fn ranked(ranked: &Ranked) -> Value {
    let remedy = &ranked.remedy;
    json!({
        "key": remedy.key,
        "what": remedy.what,
        "effect": remedy.effect().key(),
        "commands": remedy.commands(),
        "figures": figures(&ranked.figures),
        "gain": ranked.gain,
        "loss": ranked.loss,
    })
}

fn figures(figures: &Figures) -> Value {
    json!({
        "good_ms": Spread::json(figures.good_ms),
        "good_iops": Spread::json(figures.good_iops),
        "bad_iops": Spread::json(figures.bad_iops),
        "bad_mib_per_s": Spread::json(figures.bad_mib),
        "fairness": Spread::json(figures.fairness),
    })
}
