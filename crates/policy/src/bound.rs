//! What combining two opinions means, per kind of field. `meet` can only narrow; everything else
//! in this crate is built on that.

use glovebox_model::{
    Access, ApprovalMode, LimitField, LimitsDemand, NetworkMode, SecurityMode, Tier,
};

use crate::word::Word;

pub(crate) trait Bound: Clone {
    /// The widest value that both allow.
    fn meet(&self, other: &Self) -> Self;
    /// Whether `asked` lies within this bound.
    fn covers(&self, asked: &Self) -> bool;
    fn show(&self) -> String;
    /// The part of `asked` that this bound does not cover, for messages.
    fn beyond(&self, asked: &Self) -> String {
        asked.show()
    }
}

/// One limit's number; less is narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) field: LimitField,
    pub(crate) raw: u64,
}

impl Bound for Amount {
    fn meet(&self, other: &Self) -> Self {
        Self {
            field: self.field,
            raw: self.raw.min(other.raw),
        }
    }
    fn covers(&self, asked: &Self) -> bool {
        asked.raw <= self.raw
    }
    fn show(&self) -> String {
        self.field.show(self.raw)
    }
}

macro_rules! least_is_narrowest {
    ($($name:ty),+) => {
        $(impl Bound for $name {
            fn meet(&self, other: &Self) -> Self {
                *self.min(other)
            }
            fn covers(&self, asked: &Self) -> bool {
                asked <= self
            }
            fn show(&self) -> String {
                self.word().to_owned()
            }
        })+
    };
}

macro_rules! most_is_narrowest {
    ($($name:ty),+) => {
        $(impl Bound for $name {
            fn meet(&self, other: &Self) -> Self {
                *self.max(other)
            }
            fn covers(&self, asked: &Self) -> bool {
                asked >= self
            }
            fn show(&self) -> String {
                self.word().to_owned()
            }
        })+
    };
}

least_is_narrowest!(NetworkMode, Access);
most_is_narrowest!(Tier, SecurityMode, LimitsDemand, ApprovalMode);

#[cfg(test)]
mod tests {
    use super::*;

    fn laws<T: Bound + PartialEq + std::fmt::Debug>(all: &[T]) {
        for a in all {
            for b in all {
                let met = a.meet(b);
                assert_eq!(met, b.meet(a), "{a:?} {b:?}");
                assert!(a.covers(&met) && b.covers(&met), "{a:?} {b:?} {met:?}");
                assert_eq!(a.covers(b), a.meet(b) == *b, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn meeting_is_symmetric_and_stays_within_both() {
        laws(&Tier::ALL);
        laws(&NetworkMode::ALL);
        laws(Access::ALL);
        laws(SecurityMode::ALL);
        laws(LimitsDemand::ALL);
        laws(&ApprovalMode::ALL);
        let amount = |raw| Amount {
            field: LimitField::Pids,
            raw,
        };
        laws(&[amount(1), amount(2), amount(u64::MAX)]);
    }

    #[test]
    fn strictness_points_the_right_way() {
        assert_eq!(
            NetworkMode::Allowlist.meet(&NetworkMode::None),
            NetworkMode::None
        );
        assert_eq!(Access::Rw.meet(&Access::Ro), Access::Ro);
        assert_eq!(Tier::Low.meet(&Tier::High), Tier::High);
        assert_eq!(
            SecurityMode::Permissive.meet(&SecurityMode::Strict),
            SecurityMode::Strict
        );
        assert_eq!(
            LimitsDemand::Supervised.meet(&LimitsDemand::Kernel),
            LimitsDemand::Kernel
        );
    }
}
