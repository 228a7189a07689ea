//! The figures of a run as bytes, for the file of the state: little-endian, names with their length in
//! front, of the figures of a row a bit each for those that there are, then those.

use counters::Time;

use super::figures::{COUNT, Figures, Row, Window};

/// A name that there is not.
const NONE: u32 = u32::MAX;

/// The bytes of a run.
pub(super) fn encode(figures: &Figures) -> Vec<u8> {
    let mut out = Vec::new();
    put_count(&mut out, figures.windows.len());
    for window in &figures.windows {
        put_name(&mut out, Some(&window.name));
        out.extend(window.from.0.to_le_bytes());
        out.extend(window.to.0.to_le_bytes());
        put_count(&mut out, window.rows.len());
        for row in &window.rows {
            row.names.iter().for_each(|name| put_name(&mut out, name.as_deref()));
            let bit =
                |(index, figure): (usize, &Option<f64>)| u128::from(figure.is_some()) << index;
            let bits: u128 = row.figures.iter().enumerate().map(bit).sum();
            out.extend(bits.to_le_bytes());
            row.figures.iter().flatten().for_each(|figure| out.extend(figure.to_le_bytes()));
        }
    }
    out
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend((count as u32).to_le_bytes());
}

fn put_name(out: &mut Vec<u8>, name: Option<&str>) {
    match name {
        Some(name) => {
            put_count(out, name.len());
            out.extend(name.as_bytes());
        }
        None => out.extend(NONE.to_le_bytes()),
    }
}

/// The run of some bytes; `None` when they are none of a run.
pub(super) fn decode(bytes: &[u8]) -> Option<Figures> {
    let mut rest = Rest(bytes);
    let mut windows = Vec::new();
    for _ in 0..rest.count()? {
        let name = rest.name()??;
        let (from, to) = (Time(rest.number()?), Time(rest.number()?));
        let count = rest.count()?;
        let rows = (0..count).map(|_| rest.row()).collect::<Option<_>>()?;
        windows.push(Window { name, from, to, rows });
    }
    rest.0.is_empty().then_some(Figures { windows })
}

/// What is not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn count(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A name that there may be.
    fn name(&mut self) -> Option<Option<String>> {
        let length = self.count()?;
        if length == NONE {
            return Some(None);
        }
        let (name, rest) = self.0.split_at_checked(length as usize)?;
        self.0 = rest;
        Some(Some(String::from_utf8(name.to_vec()).ok()?))
    }

    fn row(&mut self) -> Option<Row> {
        let mut row = Row { names: Default::default(), figures: [None; COUNT] };
        for name in &mut row.names {
            *name = self.name()?;
        }
        let bits = self.array().map(u128::from_le_bytes)?;
        for (index, figure) in row.figures.iter_mut().enumerate() {
            if bits >> index & 1 == 1 {
                *figure = Some(self.array().map(f64::from_le_bytes)?);
            }
        }
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let mut row = Row { names: Default::default(), figures: [None; COUNT] };
        row.names[2] = Some("vm:scsi0:1".into());
        (row.figures[0], row.figures[COUNT - 1]) = (Some(0.1), Some(-3.0));
        let window = |rows| Window { name: "a".into(), from: Time(1), to: Time(2), rows };
        let figures = Figures { windows: vec![window(vec![row]), window(vec![])] };
        let bytes = encode(&figures);
        assert_eq!(decode(&bytes), Some(figures));
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), None, "{cut}");
        }
        assert_eq!(decode(&[bytes, vec![0]].concat()), None);
        assert_eq!(decode(&[0xff; 64]), None);
    }
}
