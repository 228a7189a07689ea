//! A set of tags, a bit each: the threads or slots of a workload that have no I/O outstanding.

use alloc::{boxed::Box, vec};

/// Tags of a workload at most.
const TAGS_MAX: u32 = 1 << 16;

#[derive(Clone, Debug)]
pub(crate) struct Tags {
    words: Box<[u64]>,
    /// No word before this one has a bit set.
    lowest: usize,
    count: u32,
}

impl Tags {
    /// All tags from 0 up to `count`, which is 1 to 65,536.
    pub(crate) fn full(count: u32) -> Self {
        let count = count.clamp(1, TAGS_MAX);
        let mut words = vec![u64::MAX; count.div_ceil(64) as usize];
        if let Some(last) = words.last_mut() {
            *last >>= (64 - count % 64) % 64;
        }
        Self { words: words.into(), lowest: 0, count }
    }

    pub(crate) fn insert(&mut self, tag: u32) {
        let word = tag as usize / 64;
        debug_assert!(self.words[word] & 1 << (tag % 64) == 0, "tag {tag} was not outstanding");
        self.words[word] |= 1 << (tag % 64);
        self.lowest = self.lowest.min(word);
        self.count += 1;
    }

    /// Takes out the lowest tag.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.count = self.count.checked_sub(1)?;
        while self.words[self.lowest] == 0 {
            self.lowest += 1;
        }
        let word = &mut self.words[self.lowest];
        let bit = word.trailing_zeros();
        *word &= *word - 1;
        Some(self.lowest as u32 * 64 + bit)
    }

    /// Tags in the set.
    pub(crate) const fn len(&self) -> usize {
        self.count as usize
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn every_tag_comes_out_once_and_again_when_put_back() {
        for count in [1, 63, 64, 65, 96, 1 << 16] {
            let mut tags = Tags::full(count);
            let all: Vec<_> = core::iter::from_fn(|| tags.pop()).collect();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
            assert!(tags.is_empty());
            tags.insert(count - 1);
            assert!(!tags.is_empty());
            assert_eq!((tags.pop(), tags.pop()), (Some(count - 1), None));
        }
    }

    #[test]
    fn counts_outside_the_range_are_cut() {
        assert_eq!(Tags::full(0).words.len(), 1);
        assert_eq!(Tags::full(u32::MAX).words.len(), 1024);
    }
}
