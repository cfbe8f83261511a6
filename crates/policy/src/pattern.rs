//! Patterns of environment keys: an exact key, or a beginning followed by `*`.

use std::collections::BTreeSet;

use glovebox_model::EnvKey;

use crate::bound::Bound;

/// Which keys may be set. The empty set allows none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnvPatterns(pub(crate) BTreeSet<String>);

impl EnvPatterns {
    pub(crate) fn every_key() -> Self {
        Self(BTreeSet::from(["*".to_owned()]))
    }

    pub(crate) fn allows(&self, key: &EnvKey) -> bool {
        self.0.iter().any(|it| pattern_covers(it, key.as_str()))
    }
}

/// Says what is wrong with a pattern; a star anywhere but at the end would match less, or more,
/// than its author thinks.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), String> {
    let beginning = pattern.strip_suffix('*').unwrap_or(pattern);
    if pattern == "*" || beginning.parse::<EnvKey>().is_ok() {
        return Ok(());
    }
    let shown: String = pattern
        .chars()
        .take(80)
        .flat_map(char::escape_debug)
        .collect();
    Err(format!(
        "`{shown}` is not an environment key, nor the beginning of one followed by `*`"
    ))
}

fn pattern_covers(bound: &str, asked: &str) -> bool {
    match bound.strip_suffix('*') {
        Some(beginning) => asked.starts_with(beginning),
        None => bound == asked,
    }
}

fn show(set: &BTreeSet<String>) -> String {
    if set.is_empty() {
        return "nothing".to_owned();
    }
    let patterns: Vec<_> = set.iter().map(String::as_str).collect();
    patterns.join(", ")
}

impl Bound for EnvPatterns {
    fn meet(&self, other: &Self) -> Self {
        let within = |inner: &Self, outer: &Self| {
            inner
                .0
                .iter()
                .filter(|it| outer.0.iter().any(|bound| pattern_covers(bound, it)))
                .cloned()
                .collect::<BTreeSet<_>>()
        };
        Self(&within(self, other) | &within(other, self))
    }

    fn covers(&self, asked: &Self) -> bool {
        asked
            .0
            .iter()
            .all(|it| self.0.iter().any(|bound| pattern_covers(bound, it)))
    }

    fn show(&self) -> String {
        show(&self.0)
    }

    fn beyond(&self, asked: &Self) -> String {
        show(
            &asked
                .0
                .iter()
                .filter(|it| !self.0.iter().any(|bound| pattern_covers(bound, it)))
                .cloned()
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(list: &[&str]) -> EnvPatterns {
        EnvPatterns(list.iter().map(|it| (*it).to_owned()).collect())
    }

    #[test]
    fn patterns_intersect_by_their_beginnings() {
        for (a, b, met) in [
            (&["*"][..], &["FOO"][..], &["FOO"][..]),
            (&["A*"], &["AB*"], &["AB*"]),
            (&["A*"], &["B*"], &[]),
            (&["A*"], &["A"], &["A"]),
            (&["AB"], &["A"], &[]),
            (&[], &["*"], &[]),
            (&["A*", "B"], &["AX", "B", "C"], &["AX", "B"]),
        ] {
            assert_eq!(patterns(a).meet(&patterns(b)), patterns(met), "{a:?} {b:?}");
            assert_eq!(patterns(b).meet(&patterns(a)), patterns(met), "{b:?} {a:?}");
        }
    }

    #[test]
    fn an_empty_list_allows_nothing() {
        let key: EnvKey = "FOO".parse().unwrap();
        assert!(!patterns(&[]).allows(&key));
        assert!(patterns(&["F*"]).allows(&key));
        assert!(!patterns(&["FO"]).allows(&key));
    }

    #[test]
    fn a_star_stands_only_at_the_end() {
        for good in ["*", "A", "A*", "_x*"] {
            assert_eq!(check_pattern(good), Ok(()));
        }
        for bad in ["", "**", "A*B", "*A", "A-B", "1A", "A**", "A B"] {
            assert!(check_pattern(bad).is_err(), "{bad}");
        }
    }
}
