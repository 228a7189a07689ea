//! A sweep on the page: of each window a chart of throughput and one of latency along the first axis,
//! a line for each combination of the others, the knees marked; then the numbers.
//!
//! The charts are inline SVG and need no script.

use std::ops::Range;

use maud::{Markup, html};

use super::words::number;
use crate::{
    sweep::{self, By, Results, Window, mean},
    text::{seconds, whole},
};

/// The size of a chart and its margins, in units of its view box.
const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;
/// Lines of a chart that have a colour of their own.
const LINES_MAX: usize = 8;
/// Values that are written below a chart at most.
const TICKS_MAX: usize = 12;
/// From this ratio of the greatest to the least value on, the axis is logarithmic.
const WIDE: f64 = 8.0;

/// Everything about the sweep.
pub(super) fn render(results: &Results<'_>) -> Markup {
    let scenario = &results.job.base;
    let axes = results.job.axes.iter();
    html! {
        section.overview aria-labelledby="sweep" {
            h1 #sweep { (scenario.title) }
            @if !scenario.source.is_empty() { p { (scenario.source) } }
            dl.facts {
                div { dt { "Scenario" } dd { (scenario.name) } }
                @for axis in axes { div { dt { (axis.name) } dd { (axis.values.join(", ")) } } }
                div { dt { "Runs" } dd { (whole(results.job.runs() as f64)) } }
            }
            @for window in &results.windows { (of_window(results, window)) }
        }
    }
}

fn of_window(results: &Results<'_>, window: &Window) -> Markup {
    html! {
        h2 { "Window " (window.name) ", " (seconds(window.from)) " to " (seconds(window.to)) }
        ul { @for knee in sweep::knees(results, window) { li { (knee) } } }
        div.charts {
            @for (title, key, by) in [
                ("IOPS", "cmds", None),
                ("DAVG ms", "davg", Some(By::Davg)),
                ("What the guest sees, ms", "total", Some(By::Total)),
            ] { (Chart { results, window, title, key, by }.render()) }
        }
        (legend(results))
        (super::run::table(&format!("Numbers of window {}", window.name), &sweep::table(results, window)))
    }
}

/// Which line is which, where there are several.
fn legend(results: &Results<'_>) -> Markup {
    let lines: Vec<_> = results.lines().take(LINES_MAX).enumerate().collect();
    let more = results.lines().count() - lines.len();
    html! {
        @if lines.len() > 1 {
            ul.lines {
                @for (index, line) in &lines {
                    li { span class=(format!("swatch vm{}", index + 1)) {} " " (results.others(line.start)) }
                }
                @if more > 0 { li { (more) " more in the table" } }
            }
        }
    }
}

/// A figure along the first axis.
struct Chart<'a> {
    results: &'a Results<'a>,
    window: &'a Window,
    title: &'a str,
    key: &'a str,
    /// Which knees are marked; of throughput both.
    by: Option<By>,
}

/// A point of a line: its place, its mean, half of its interval.
type Dot = (usize, f64, f64);

impl Chart<'_> {
    fn render(&self) -> Markup {
        let lines: Vec<_> = self.results.lines().take(LINES_MAX).collect();
        let dots: Vec<_> = lines.iter().map(|line| self.dots(line)).collect();
        let most = dots.iter().flatten().map(|dot| dot.1 + dot.2).fold(0.0, f64::max);
        if most <= 0.0 {
            return html! {};
        }
        let top = round_up(most);
        let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top;
        let xs = self.places();
        html! {
            figure.sweep {
                figcaption { b { (self.title) } }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) width="100%" role="img" aria-label=(self.title) {
                    @for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
                        line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y(part * top)) y2=(y(part * top)) {}
                        text.tick.y x=(LEFT - 6.0) y=(y(part * top) + 4.0) { (number(Some(part * top))) }
                    }
                    @for (value, x) in self.ticks(&xs) {
                        text.tick x=(x) y=(HEIGHT - BOTTOM + 18.0) { (value) }
                    }
                    text.tick x=((LEFT + WIDTH - RIGHT) / 2.0) y=(HEIGHT - 6.0) { (self.results.along().name) }
                    @for (index, (line, dots)) in lines.iter().zip(&dots).enumerate() {
                        g class=(format!("vm{}", index + 1)) {
                            polyline points=(points(dots, &xs, y)) {}
                            @for dot in dots { (self.dot(line, dot, xs[dot.0], &y)) }
                        }
                    }
                }
            }
        }
    }

    fn dots(&self, line: &Range<usize>) -> Vec<Dot> {
        let dot = |(place, point): (usize, usize)| {
            let stack = self.window.stacks[point].as_ref()?;
            let half = sweep::half(stack, self.key).unwrap_or_default();
            Some((place, mean(stack, self.key)?, half))
        };
        line.clone().enumerate().filter_map(dot).collect()
    }

    /// A point with its interval; at the knee with a ring.
    fn dot(&self, line: &Range<usize>, dot: &Dot, x: f64, y: &dyn Fn(f64) -> f64) -> Markup {
        let (place, mean, half) = *dot;
        let is_knee = |by| self.results.knee(self.window, line, by) == Some(line.start + place);
        let is_knee =
            By::ALL.into_iter().any(|by| self.by.is_none_or(|own| own == by) && is_knee(by));
        let told = format!(
            "{}: {}{}",
            self.results.along().values[place],
            number(Some(mean)),
            if half > 0.0 { format!(" ± {}", number(Some(half))) } else { String::new() }
        );
        html! {
            @if half > 0.0 {
                line x1=(x) x2=(x) y1=(y(mean - half)) y2=(y(mean + half)) {}
            }
            circle cx=(x) cy=(y(mean)) r="3.5" { title { (told) } }
            @if is_knee { circle.knee cx=(x) cy=(y(mean)) r="9" {} }
        }
    }

    /// Where each value of the axis is.
    fn places(&self) -> Vec<f64> {
        let axis = self.results.along();
        let count = axis.values.len();
        let even = || (0..count).map(|place| place as f64).collect();
        let values = axis.numbers().filter(|all| all.is_sorted()).unwrap_or_else(even);
        let is_wide = values[0] > 0.0 && values[count - 1] / values[0] >= WIDE;
        let scaled: Vec<_> =
            values.iter().map(|value| if is_wide { value.ln() } else { *value }).collect();
        let (first, last) = (scaled[0], scaled[count - 1]);
        let room = WIDTH - LEFT - RIGHT - 24.0;
        let place = |value: f64| match last > first {
            true => LEFT + 12.0 + room * (value - first) / (last - first),
            false => LEFT + 12.0 + room / 2.0,
        };
        scaled.into_iter().map(place).collect()
    }

    /// The values that have room below the chart.
    fn ticks<'t>(&'t self, xs: &'t [f64]) -> impl Iterator<Item = (&'t str, f64)> {
        let values = &self.results.along().values;
        let step = values.len().div_ceil(TICKS_MAX);
        values.iter().map(String::as_str).zip(xs.iter().copied()).step_by(step)
    }
}

fn points(dots: &[Dot], xs: &[f64], y: impl Fn(f64) -> f64) -> String {
    let point = |dot: &Dot| format!("{:.1},{:.1}", xs[dot.0], y(dot.1));
    dots.iter().map(point).collect::<Vec<_>>().join(" ")
}

/// The next of 1, 2, 4, 5, 8 and 10 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= value).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::round_up;

    #[test]
    fn a_scale_ends_at_a_round_number() {
        for (value, top) in [(0.7, 0.8), (1.0, 1.0), (9.1, 10.0), (64_950.0, 80_000.0)] {
            assert!((round_up(value) - top).abs() < 1e-9 * top, "{value}");
        }
    }
}
