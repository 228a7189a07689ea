//! Histograms of `vscsiStats -p all -c`: what a virtual disk asks for, at its own door.
//!
//! Each block is a title line, `min`, `max`, `mean`, `count`, a heading and the bins; the last
//! limit comes twice, and the repeat counts what is above it [VSCSI]. Such blocks are read, and printed for
//! disks that kavg serves.

use counters::{Direction, Metric, VSCSI};

use crate::Error;

/// A bin of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The greatest value in it; `None` for the last bin, which has no end.
    pub limit: Option<i64>,
    /// Commands in it.
    pub commands: u64,
}

/// A histogram of one virtual disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VscsiHistogram {
    /// What it counts.
    pub metric: Metric,
    /// Reads or writes; `None` for both.
    pub direction: Option<Direction>,
    /// The leader world of the VM, by which esxtop names its rows on devices [CAP-A].
    pub world: u64,
    /// The handle of the virtual disk.
    pub handle: u64,
    /// Where the virtual disk hangs (`scsi0:0`).
    pub disk: String,
    /// Least value.
    pub min: i64,
    /// Greatest value.
    pub max: i64,
    /// Mean value.
    pub mean: i64,
    /// Commands counted.
    pub count: u64,
    /// The bins, ascending.
    pub bins: Vec<Bin>,
}

/// Reads the histograms of a file; `file` is its name in messages. Lines before the first
/// histogram are passed over.
///
/// # Errors
/// A file without a histogram, a title that is not known, a line that is no bin.
pub fn parse_vscsistats(file: &str, text: &str) -> Result<Vec<VscsiHistogram>, Error> {
    let mut histograms: Vec<VscsiHistogram> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim().trim_end_matches(',');
        if let Some(title) = text.strip_prefix("Histogram: ") {
            let histogram = parse_title(title).ok_or_else(|| bad(file, line, text, TITLE))?;
            histograms.push(histogram);
        } else if let Some(histogram) = histograms.last_mut()
            && !text.is_empty()
            && text != "Frequency,Histogram Bucket Limit"
        {
            histogram.add(text).ok_or_else(|| bad(file, line, text, BIN))?;
        }
    }
    if histograms.is_empty() {
        return Err(Error::new(file, format!("holds no histogram; expected {TITLE}")));
    }
    histograms.iter_mut().for_each(VscsiHistogram::open_last_bin);
    Ok(histograms)
}

const TITLE: &str = "'Histogram: IO lengths of commands,virtual machine worldGroupID,N,\
                     virtual disk handleID,N (scsi0:0)' or another of vscsiStats -p all -c";
const BIN: &str = "'min,N', 'max,N', 'mean,N', 'count,N' or '<frequency>,<limit>'";

fn bad(file: &str, line: u64, text: &str, expected: &str) -> Error {
    let shown: String = text.chars().take(60).collect();
    Error::at(file, line, format!("'{shown}' is not understood; expected {expected}"))
}

fn parse_title(title: &str) -> Option<VscsiHistogram> {
    let (what, rest) = title.split_once(",virtual machine worldGroupID,")?;
    let (world, rest) = rest.split_once(",virtual disk handleID,")?;
    let (handle, disk) = rest.split_once(' ').unwrap_or((rest, ""));
    let (metric, direction, _) =
        *VSCSI.iter().find(|(_, _, title)| title.eq_ignore_ascii_case(what))?;
    Some(VscsiHistogram {
        metric,
        direction,
        world: world.trim().parse().ok()?,
        handle: handle.trim().parse().ok()?,
        disk: disk.trim().trim_matches(['(', ')']).into(),
        min: 0,
        max: 0,
        mean: 0,
        count: 0,
        bins: Vec::new(),
    })
}

/// Prints histograms as `vscsiStats` does with `-c` [VSCSI]; what [`parse_vscsistats`] reads.
#[must_use]
pub fn print_vscsistats(histograms: &[VscsiHistogram]) -> String {
    let mut out = String::new();
    for one in histograms {
        let VscsiHistogram { world, handle, disk, min, max, mean, count, .. } = one;
        out.push_str(&format!(
            "Histogram: {},virtual machine worldGroupID,{world},virtual disk handleID,{handle} ({disk})\n\
             min,{min}\nmax,{max}\nmean,{mean}\ncount,{count}\nFrequency,Histogram Bucket Limit\n",
            one.title(),
        ));
        for (commands, limit, _) in one.rows() {
            out.push_str(&format!("{commands},{limit}\n"));
        }
    }
    out
}

/// Prints histograms as `vscsiStats` does without `-c`; its layout is from memory (reference section 6.5).
#[must_use]
pub fn print_vscsistats_text(histograms: &[VscsiHistogram]) -> String {
    let mut out = String::new();
    for one in histograms {
        let VscsiHistogram { world, handle, disk, min, max, mean, count, .. } = one;
        out.push_str(&format!(
            "Histogram: {} for virtual machine worldGroupID: {world}, virtual disk handleID: {handle} \
             ({disk}) {{\n min : {min}\n max : {max}\n mean : {mean}\n count : {count}\n {{\n",
            one.title(),
        ));
        for (commands, limit, sign) in one.rows() {
            out.push_str(&format!("  {commands:<15} ({sign:<2} {limit:>15})\n"));
        }
        out.push_str(" }\n}\n");
    }
    out
}

impl VscsiHistogram {
    /// Its title, without whose it is.
    fn title(&self) -> &'static str {
        let is_it = |(metric, of, _): &&(Metric, Option<Direction>, &str)| {
            (*metric, *of) == (self.metric, self.direction)
        };
        VSCSI.iter().find(is_it).map_or("", |(_, _, title)| title)
    }

    /// Its bins: commands, limit, and how they are to that.
    fn rows(&self) -> impl Iterator<Item = (u64, i64, &'static str)> + '_ {
        let last = self.bins.iter().filter_map(|bin| bin.limit).next_back().unwrap_or_default();
        self.bins.iter().map(move |bin| match bin.limit {
            Some(limit) => (bin.commands, limit, "<="),
            None => (bin.commands, last, ">"),
        })
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let (key, value) = line.split_once(',')?;
        let value = value.trim();
        match key.trim() {
            "min" => self.min = value.parse().ok()?,
            "max" => self.max = value.parse().ok()?,
            "mean" => self.mean = value.parse().ok()?,
            "count" => self.count = value.parse().ok()?,
            frequency => {
                let limit = Some(value.parse().ok()?);
                self.bins.push(Bin { limit, commands: frequency.parse().ok()? });
            }
        }
        Some(())
    }

    /// The last limit comes twice; the second time it stands for everything above.
    fn open_last_bin(&mut self) {
        if let [.., before, last] = self.bins.as_mut_slice()
            && before.limit == last.limit
        {
            last.limit = None;
        }
    }

    /// The share of commands above `value`, from 0 to 1; bins count as a whole, by their limits.
    #[must_use]
    pub fn share_above(&self, value: i64) -> f64 {
        let all: u64 = self.bins.iter().map(|bin| bin.commands).sum();
        let above = self.bins.iter().filter(|bin| bin.limit.is_none_or(|limit| limit > value));
        above.map(|bin| bin.commands).sum::<u64>() as f64 / all.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = "\
Histogram: number of outstanding Read IOs when a new Read IO is issued,\
virtual machine worldGroupID,2099979,virtual disk handleID,8194 (scsi0:1)
min,0
max,80
mean,30
count,10
Frequency,Histogram Bucket Limit
2,1
3,32
1,64
4,64
";

    #[test]
    fn a_histogram_is_read_whole() {
        let histograms = parse_vscsistats("v.csv", FILE).expect("readable");
        let [histogram] = histograms.as_slice() else { panic!("one histogram") };
        assert_eq!(histogram.metric, Metric::Outstanding);
        assert_eq!(histogram.direction, Some(Direction::Read));
        assert_eq!((histogram.world, histogram.handle), (2_099_979, 8_194));
        assert_eq!(histogram.disk, "scsi0:1");
        assert_eq!((histogram.min, histogram.max, histogram.mean), (0, 80, 30));
        assert_eq!(histogram.bins[2], Bin { limit: Some(64), commands: 1 });
        assert_eq!(histogram.bins[3], Bin { limit: None, commands: 4 });
        assert!((histogram.share_above(32) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = [
            (String::new(), "v.csv: holds no histogram; expected"),
            ("Histogram: heights of people\n".into(), "v.csv:1: 'Histogram: heights of people'"),
            (FILE.replace("3,32", "three,32"), "v.csv:8: 'three,32' is not understood"),
            (FILE.replace("count,10", "count"), "v.csv:5: 'count' is not understood"),
        ];
        for (text, expected) in table {
            let error = parse_vscsistats("v.csv", &text).expect_err(&text).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(start in 0_usize..200, text in "([a-z0-9,()-]{0,20}\n){0,8}") {
            let text = FILE.get(..start).unwrap_or(FILE).to_owned() + &text;
            let _ = parse_vscsistats("v.csv", &text);
        }
    }
}
