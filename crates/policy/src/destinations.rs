//! Sets of destinations and how they intersect.

use std::collections::BTreeSet;

use glovebox_model::HostPort;

use crate::bound::Bound;

/// Which destinations may be reached. `Any` exists only above an unrestricted network, where no
/// list was written and a request may still narrow itself to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destinations {
    Any,
    Only(BTreeSet<HostPort>),
}

impl Destinations {
    pub(crate) fn nothing() -> Self {
        Self::Only(BTreeSet::new())
    }

    pub(crate) fn into_set(self) -> BTreeSet<HostPort> {
        match self {
            Self::Any => BTreeSet::new(),
            Self::Only(set) => set,
        }
    }
}

fn show(set: &BTreeSet<HostPort>) -> String {
    if set.is_empty() {
        return "nothing".to_owned();
    }
    let names: Vec<_> = set.iter().map(ToString::to_string).collect();
    names.join(", ")
}

impl Bound for Destinations {
    fn meet(&self, other: &Self) -> Self {
        let (ours, theirs) = match (self, other) {
            (Self::Any, it) | (it, Self::Any) => return it.clone(),
            (Self::Only(ours), Self::Only(theirs)) => (ours, theirs),
        };
        let within = |inner: &BTreeSet<HostPort>, outer: &BTreeSet<HostPort>| {
            inner
                .iter()
                .filter(|it| outer.iter().any(|bound| bound.covers(it)))
                .cloned()
                .collect::<BTreeSet<_>>()
        };
        Self::Only(&within(ours, theirs) | &within(theirs, ours))
    }

    fn covers(&self, asked: &Self) -> bool {
        match (self, asked) {
            (Self::Any, _) => true,
            (Self::Only(_), Self::Any) => false,
            (Self::Only(bound), Self::Only(asked)) => asked
                .iter()
                .all(|it| bound.iter().any(|bound| bound.covers(it))),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Any => "any destination".to_owned(),
            Self::Only(set) => show(set),
        }
    }

    fn beyond(&self, asked: &Self) -> String {
        match (self, asked) {
            (Self::Any, _) | (_, Self::Any) => asked.show(),
            (Self::Only(bound), Self::Only(asked)) => show(
                &asked
                    .iter()
                    .filter(|it| !bound.iter().any(|bound| bound.covers(it)))
                    .cloned()
                    .collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(list: &[&str]) -> Destinations {
        Destinations::Only(list.iter().map(|it| it.parse().unwrap()).collect())
    }

    #[test]
    fn wildcards_meet_names_as_names() {
        for (a, b, met) in [
            (
                &["*.x.io:443"][..],
                &["a.x.io:443"][..],
                &["a.x.io:443"][..],
            ),
            (&["*.x.io:443"], &["x.io:443"], &[]),
            (&["*.x.io:443"], &["a.x.io:80"], &[]),
            (&["*.x.io:443"], &["*.a.x.io:443"], &["*.a.x.io:443"]),
            (&["*.x.io:443"], &["b.a.x.io:443"], &["b.a.x.io:443"]),
            (&["*.x.io:443"], &["evilx.io:443"], &[]),
            (&["*.x.io:443"], &["*.y.io:443"], &[]),
            (
                &["a.io:443", "b.io:443"],
                &["b.io:443", "c.io:443"],
                &["b.io:443"],
            ),
            (&[], &["a.io:443"], &[]),
        ] {
            assert_eq!(only(a).meet(&only(b)), only(met), "{a:?} {b:?}");
            assert_eq!(only(b).meet(&only(a)), only(met), "{b:?} {a:?}");
        }
        assert_eq!(
            Destinations::Any.meet(&only(&["a.io:1"])),
            only(&["a.io:1"])
        );
    }

    #[test]
    fn only_what_is_not_covered_is_named() {
        let bound = only(&["*.x.io:443"]);
        assert_eq!(bound.beyond(&only(&["a.x.io:443", "x.io:443"])), "x.io:443");
        assert!(!bound.covers(&Destinations::Any));
    }
}
