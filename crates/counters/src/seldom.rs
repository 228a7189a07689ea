//! What most objects never count: it takes memory once it is counted.

use alloc::boxed::Box;
use core::fmt;

/// A value that is the default for most, and takes a pointer's memory until it is not.
#[derive(Clone, Default)]
pub struct Seldom<T>(Option<Box<T>>);

impl<T: Copy + Default + PartialEq> Seldom<T> {
    /// That value.
    #[must_use]
    pub fn of(value: T) -> Self {
        Self((value != T::default()).then(|| Box::new(value)))
    }

    /// The value.
    #[must_use]
    pub fn get(&self) -> T {
        self.0.as_deref().copied().unwrap_or_default()
    }

    /// The value, to change it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }

    /// Becomes another one, in its own memory once it has some.
    pub fn copy(&mut self, from: &Self) {
        if self.0.is_some() || from.0.is_some() {
            *self.get_mut() = from.get();
        }
    }
}

/// By its value, as a digest of counters has it, and not by its memory.
impl<T: Copy + Default + PartialEq + fmt::Debug> fmt::Debug for Seldom<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl<T: Copy + Default + PartialEq> PartialEq for Seldom<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Copy + Default + Eq> Eq for Seldom<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_memory_once_it_is_not_the_default() {
        let mut some = Seldom::<u64>::default();
        assert_eq!((some.get(), some.0.is_none()), (0, true));
        *some.get_mut() += 7;
        assert_eq!((some.get(), &some), (7, &Seldom::of(7)));
        some.copy(&Seldom::of(0));
        assert_eq!((&some, alloc::format!("{some:?}")), (&Seldom::default(), "0".into()));
        assert!(some.0.is_some() && Seldom::of(0_u64).0.is_none());
    }
}
