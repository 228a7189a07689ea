//! Templates of scenarios: TOML with names in braces, and above it how each name is drawn.
//!
//! ```text
//! #: depth = 16 | 24 | 32           one of these
//! #: service = 0.5..3.0             a number in between; a whole one without a point
//! #: threads = depth + more * 2     worked out from left to right, to a whole number
//! ```

/// Randomness that depends on nothing but a seed and a name.
pub(crate) struct Draw(u64);

impl Draw {
    /// A stream of its own for each name and seed.
    pub(crate) fn new(name: &str, seed: u64) -> Self {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let mut draw = Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, mix) ^ seed.rotate_left(32));
        draw.next();
        draw
    }

    /// Splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number, both ends included.
    pub(crate) fn whole(&mut self, from: u64, to: u64) -> u64 {
        from + (self.unit() * (to - from + 1) as f64) as u64
    }

    /// One of several.
    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.whole(0, of.len() as u64 - 1) as usize]
    }
}

/// A template with its names drawn, beside those that are given.
///
/// # Panics
/// When the template is not one: they are part of this program.
pub(crate) fn fill(template: &str, given: &[(&str, String)], draw: &mut Draw) -> String {
    let mut names: Vec<(&str, String)> = given.to_vec();
    let mut text = String::new();
    for line in template.lines() {
        match line.strip_prefix("#: ") {
            Some(rule) => {
                let (name, how) = rule.split_once(" = ").expect("NAME = HOW");
                let value = value(how, &names, draw);
                names.push((name, value));
            }
            None => text += &format!("{line}\n"),
        }
    }
    names.iter().fold(text, |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

fn value(how: &str, names: &[(&str, String)], draw: &mut Draw) -> String {
    let choices: Vec<&str> = how.split(" | ").collect();
    if choices.len() > 1 {
        return draw.one(&choices).to_string();
    }
    let number = |text: &str| text.parse::<f64>().expect("a number");
    match how.split_once("..") {
        Some((from, to)) if from.contains('.') => {
            format!("{:.3}", number(from) + (number(to) - number(from)) * draw.unit())
        }
        Some((from, to)) => draw.whole(number(from) as u64, number(to) as u64).to_string(),
        None => format!("{:.0}", expression(how, names).max(1.0)),
    }
}

/// `a + b * c - d`, from left to right.
fn expression(text: &str, names: &[(&str, String)]) -> f64 {
    let term = |word: &str| {
        let named = names.iter().find(|(name, _)| *name == word);
        named.map_or(word, |(_, value)| value).parse::<f64>().expect("a number or its name")
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    words[1..].chunks(2).fold(term(words[0]), |sum, pair| match pair {
        ["+", word] => sum + term(word),
        ["-", word] => sum - term(word),
        ["*", word] => sum * term(word),
        ["/", word] => sum / term(word),
        _ => panic!("`{text}`: + - * and / are there"),
    })
}

#[cfg(test)]
mod tests {
    use super::{Draw, fill};

    #[test]
    fn names_are_drawn_in_their_ranges_and_put_in_place() {
        let template = "#: a = 2..4\n#: b = 0.5..1.5\n#: c = x | y\n#: d = a + 6 * 2\n\
                        {n} {a} {b} {c} {d}\n";
        for seed in 0..50 {
            let text = fill(template, &[("n", "7".into())], &mut Draw::new("t", seed));
            let words: Vec<&str> = text.split_whitespace().collect();
            let (a, b): (u32, f64) = (words[1].parse().unwrap(), words[2].parse().unwrap());
            assert!(words[0] == "7" && (2..=4).contains(&a) && (0.5..=1.5).contains(&b), "{text}");
            assert!(["x", "y"].contains(&words[3]) && words[4] == ((a + 6) * 2).to_string());
        }
    }

    #[test]
    fn one_seed_gives_one_draw() {
        let draws = |name, seed| {
            let mut draw = Draw::new(name, seed);
            [draw.next(), draw.next()]
        };
        assert_eq!(draws("a", 1), draws("a", 1));
        assert_ne!(draws("a", 1), draws("a", 2));
        assert_ne!(draws("a", 1), draws("b", 1));
    }
}
