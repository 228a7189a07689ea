//! What a sweep turns: `KEY=VALUES` as it is typed, and a scenario with one of the values.

use std::collections::BTreeSet;

use knobs::Advanced;
use scenario::Over;

use super::edit::Edit;

/// Values of one axis at most.
const VALUES_MAX: usize = 10_000;
/// Where the value goes in a line that sets something.
const HOLE: &str = "{}";
/// The driver's depth per device and DSNRO together.
const DEVICE_DEPTH: &str = "device.depth";
/// What the results have a column for already.
const TAKEN: [&str; 3] = ["version", "seed", "window"];

/// Something that takes several values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// As it was typed.
    pub(crate) name: String,
    what: What,
    /// Its values as text, each once; at least one.
    pub(crate) values: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// A key of the file.
    Key,
    /// A line as `--set` takes it, with a hole.
    Line(String),
    /// Every device queue.
    DeviceDepth,
    /// What its values are names of, in their order.
    Named(Vec<Vec<Edit>>),
}

impl Axis {
    /// `KEY=VALUES`.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, values) = split(text).ok_or("expected KEY=VALUES")?;
        let what = match name {
            DEVICE_DEPTH => What::DeviceDepth,
            line if line.contains(HOLE) => What::Line(line.to_owned()),
            key => match option(key) {
                Some(path) => {
                    What::Line(format!("system settings advanced set -o {path} -i {HOLE}"))
                }
                None => What::Key,
            },
        };
        if what == What::Key {
            Over::new(name, "").map_err(|error| error.to_string())?;
        }
        if TAKEN.contains(&name) {
            return Err(format!("`{name}` is no axis; seeds are --seed and --seeds"));
        }
        Ok(Self { name: name.to_owned(), what, values: self::values(values)? })
    }

    /// Of things that are done to a scenario under names.
    pub(crate) fn named(name: &str, all: impl IntoIterator<Item = (String, Vec<Edit>)>) -> Self {
        let (values, edits) = all.into_iter().unzip();
        Self { name: name.to_owned(), what: What::Named(edits), values }
    }

    /// The key with each of its values, where it is one of the file; those that are refused say so when they
    /// are run.
    pub(crate) fn overs(&self) -> impl Iterator<Item = Over> {
        let values = self.values.iter().filter(|_| self.what == What::Key);
        values.filter_map(|value| Over::new(&self.name, value).ok())
    }

    /// What a value does to a scenario.
    pub(super) fn edits(&self, value: &str) -> Result<Vec<Edit>, String> {
        let edit = match &self.what {
            What::Key => {
                Edit::Key(Over::new(&self.name, value).map_err(|error| error.to_string())?)
            }
            What::Line(line) => Edit::Line(line.replace(HOLE, value)),
            What::DeviceDepth => Edit::DeviceDepth(
                value.parse().map_err(|_| format!("`{value}` is no whole number"))?,
            ),
            What::Named(edits) => {
                let named = self.values.iter().zip(edits).find(|(name, _)| *name == value);
                return Ok(named.map(|(_, edits)| edits.clone()).unwrap_or_default());
            }
        };
        Ok(vec![edit])
    }

    /// Whether all values are numbers without a unit.
    pub(super) fn is_plain(&self) -> bool {
        self.values.iter().all(|value| value.parse::<f64>().is_ok_and(f64::is_finite))
    }

    /// The values as numbers, where all of them are numbers of one unit.
    pub(crate) fn numbers(&self) -> Option<Vec<f64>> {
        let all: Vec<_> =
            self.values.iter().map(|value| Number::parse(value)).collect::<Option<_>>()?;
        let is_one = all.windows(2).all(|pair| pair[0].unit == pair[1].unit);
        is_one.then(|| all.iter().map(|number| number.value).collect())
    }
}

/// The path of an advanced option, as `/Disk/SchedQuantum` or `Disk.SchedQuantum`.
fn option(name: &str) -> Option<&'static str> {
    let path = format!("/{}", name.trim_start_matches('/').replace('.', "/"));
    Some(Advanced::from_path(&path)?.info().path)
}

/// Key and values: at the first `=` outside of quotes, in a line behind its hole.
fn split(text: &str) -> Option<(&str, &str)> {
    let from = text.rfind(HOLE).map_or(0, |at| at + HOLE.len());
    let at = from + outside(&text[from..], '=').next()?;
    Some((&text[..at], &text[at + 1..]))
}

/// Where a letter stands outside of quotes and brackets.
fn outside(text: &str, wanted: char) -> impl Iterator<Item = usize> {
    let (mut quoted, mut depth) = (false, 0_i32);
    text.char_indices().filter_map(move |(at, c)| {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        (c == wanted && !quoted && depth <= 0).then_some(at)
    })
}

/// Values and ranges with commas between them.
fn values(text: &str) -> Result<Vec<String>, String> {
    let (mut values, mut from) = (Vec::new(), 0);
    for at in outside(text, ',').chain([text.len()]) {
        let part = text[from..at].trim();
        from = at + 1;
        match part.split_once("..") {
            _ if part.is_empty() => return Err("a value is missing".into()),
            Some((first, rest)) if !part.starts_with(['"', '[', '{']) => {
                values.extend(range(part, first, rest)?);
            }
            _ => values.push(part.to_owned()),
        }
        if values.len() > VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} values"));
        }
    }
    let mut seen = BTreeSet::new();
    match values.iter().find(|value| !seen.insert(value.as_str())) {
        Some(twice) => Err(format!("`{twice}` is there twice")),
        None => Ok(values),
    }
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Number<'a> {
    value: f64,
    decimals: usize,
    unit: &'a str,
}

impl<'a> Number<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == '_';
        let (number, unit) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
        let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        Some(Self { value: number.replace('_', "").parse().ok()?, decimals, unit: unit.trim() })
    }
}

/// `A..B` by ones, `A..B+STEP`, `A..BxFACTOR`: from A up to B at most, with as many decimals as A has, or the
/// step has. One of the numbers that are no factor may say the unit of all.
fn range(text: &str, first: &str, rest: &str) -> Result<Vec<String>, String> {
    let refuse = |why: &str| {
        format!("`{text}`: {why}; a range is as `16..256x2`, `10..50+10`, `1..8` or `1ms..8msx2`")
    };
    let number = |text| Number::parse(text).ok_or_else(|| refuse("no number"));
    let (last, step) = match rest.rfind(['x', '+']) {
        Some(at) => (&rest[..at], Some((rest[at..].starts_with('x'), number(&rest[at + 1..])?))),
        None => (rest, None),
    };
    let (first, last) = (number(first)?, number(last)?);
    let (is_factor, by) = step.unwrap_or((false, Number { value: 1.0, decimals: 0, unit: "" }));
    if is_factor && !by.unit.is_empty() {
        return Err(refuse("its factor has a unit"));
    }
    let units = [first, last, by].map(|number| number.unit);
    let unit = units.into_iter().find(|unit| !unit.is_empty()).unwrap_or_default();
    if units.into_iter().any(|own| !own.is_empty() && own != unit) {
        return Err(refuse("more than one unit"));
    }
    if last.value < first.value {
        return Err(refuse("its end is below its begin"));
    }
    let grows = if is_factor { by.value > 1.0 && first.value > 0.0 } else { by.value > 0.0 };
    if !grows {
        return Err(refuse("its step does not lead up"));
    }
    let decimals = first.decimals.max(if is_factor { 0 } else { by.decimals });
    // What is reached but for the rounding of binary fractions is reached.
    let end = last.value * (1.0 + 1e-9);
    let at = |index: i32| match is_factor {
        true => first.value * by.value.powi(index),
        false => first.value + by.value * f64::from(index),
    };
    let all = (0..=VALUES_MAX as i32).map(at).take_while(|value| *value <= end);
    let mut values: Vec<_> = all.map(|value| format!("{value:.decimals$}{unit}")).collect();
    values.dedup();
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_lists_and_ranges() {
        let cases = [
            ("1,8,64", "1 8 64"),
            ("16..256x2", "16 32 64 128 256"),
            ("16..255x2", "16 32 64 128"),
            ("1..4", "1 2 3 4"),
            ("0.1..0.5+0.1", "0.1 0.2 0.3 0.4 0.5"),
            ("1ms..8msx2", "1ms 2ms 4ms 8ms"),
            ("10..50%+20", "10% 30% 50%"),
            ("10%..50%+20", "10% 30% 50%"),
            ("1ms..8x2", "1ms 2ms 4ms 8ms"),
            ("1..3+1ms", "1ms 2ms 3ms"),
            ("10..50+20", "10 30 50"),
            ("0.5..4x2", "0.5 1.0 2.0 4.0"),
            ("8..20x1.4", "8 11 16"),
            ("1..2x1.2", "1 2"),
            ("5,10..30+10,99", "5 10 20 30 99"),
            ("low,\"a,b\",[1,2],{ \"4k\" = 1 }", "low \"a,b\" [1,2] { \"4k\" = 1 }"),
            ("4k", "4k"),
            ("7..7", "7"),
        ];
        for (text, expected) in cases {
            assert_eq!(values(text).map(|all| all.join(" ")), Ok(expected.to_owned()), "{text}");
        }
        let cases = [
            ("", "a value is missing"),
            ("1,,2", "a value is missing"),
            ("1,2,1", "`1` is there twice"),
            ("1..3,2", "`2` is there twice"),
            ("a..b", "no number"),
            ("1..", "no number"),
            ("4..1", "its end is below its begin"),
            ("1..4+0", "its step does not lead up"),
            ("1..4x1", "its step does not lead up"),
            ("0..4x2", "its step does not lead up"),
            ("1ms..2s+1ms", "more than one unit"),
            ("1..2ms+1s", "more than one unit"),
            ("1ms..8msx2ms", "its factor has a unit"),
            ("1..1000000", "more than 10000 values"),
        ];
        for (text, expected) in cases {
            let said = values(text).unwrap_err();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn a_key_ends_at_its_equals_sign() {
        let what = |text: &str| Axis::parse(text).map(|axis| (axis.name, axis.what));
        let key = |name: &str| Ok((name.to_owned(), What::Key));
        let line = |name: &str, line: &str| Ok((name.to_owned(), What::Line(line.to_owned())));
        assert_eq!(what("vm.a.workload.threads=1"), key("vm.a.workload.threads"));
        assert_eq!(what("vm.\"a=b\".power=on"), key("vm.\"a=b\".power"));
        assert_eq!(what("device.depth=1").unwrap().1, What::DeviceDepth);
        let set = "system module parameters set -m fnic -p fnic_max_qdepth={}";
        assert_eq!(what(&format!("{set}=32")), line(set, set));
        let set = "system settings advanced set -o /Disk/SchedQuantum -i {}";
        for name in ["Disk.SchedQuantum", "/Disk/SchedQuantum"] {
            assert_eq!(what(&format!("{name}=1")), line(name, set));
        }
        for (text, why) in
            [("x", "expected KEY=VALUES"), ("=1", "`` is no key"), ("seed=1", "--seeds")]
        {
            assert!(what(text).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn values_of_one_unit_are_numbers() {
        let numbers = |text: &str| Axis::parse(&format!("k={text}")).unwrap().numbers();
        assert_eq!(numbers("1,2.5"), Some(vec![1.0, 2.5]));
        assert_eq!(numbers("1ms..4msx2"), Some(vec![1.0, 2.0, 4.0]));
        assert_eq!((numbers("1ms,1s"), numbers("low,high")), (None, None));
    }
}
