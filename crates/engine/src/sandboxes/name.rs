//! What a kept sandbox is called: readable, unique, and short enough for a container.

use glovebox_model::{Lifetime, ProjectId, Sandbox, SpaceId};
use sha2::{Digest, Sha256};

/// The longest name that container engines and host names take.
const LONGEST: usize = 63;
const SLUG: usize = 32;
/// Digits of the hash. Whoever finds another scope with the same ones still gets no sandbox that is
/// not its own: rows are compared with their scope.
const DIGEST: usize = 16;

/// Whose sandbox it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) space: SpaceId,
    pub(crate) project: ProjectId,
    pub(crate) lifetime: Lifetime,
    /// The session or agent; none when it is shared.
    pub(crate) key: Option<String>,
    /// Whose session it is: two agents may use the same words for theirs.
    pub(crate) agent: Option<String>,
}

impl Scope {
    pub(crate) fn is_of(&self, row: &Sandbox) -> bool {
        row.space_id == self.space
            && row.project_id == self.project
            && row.lifetime == self.lifetime
            && row.scope == self.key
            && row.agent_id == self.agent
    }

    /// The same scope has the same name, on every server of a store and after every restart; two
    /// scopes never have one, however alike their keys look. `installation` tells stores apart that use one
    /// container engine.
    pub(crate) fn name(&self, prefix: &str, installation: &str) -> String {
        let key = self.key.as_deref().unwrap_or(Lifetime::Shared.as_str());
        let parts = [
            installation,
            self.space.as_str(),
            self.project.as_str(),
            self.lifetime.as_str(),
            key,
        ];
        let mut digest = Sha256::new();
        for part in parts.into_iter().chain(self.agent.as_deref()) {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        // The key alone decides for people; everything decides for the digits.
        let digest: String = digest.finalize()[..DIGEST / 2]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let prefix = slug(prefix, LONGEST - SLUG - DIGEST - 2);
        let name = format!("{prefix}-{}-{digest}", slug(key, SLUG));
        name.trim_start_matches('-').to_owned()
    }
}

/// Lower case letters, digits and single dashes, at most so many.
fn slug(text: &str, most: usize) -> String {
    let mut slug = String::new();
    for letter in text.chars() {
        if slug.len() >= most {
            break;
        }
        let letter = letter.to_ascii_lowercase();
        if letter.is_ascii_alphanumeric() {
            slug.push(letter);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        "x".to_owned()
    } else {
        slug.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn scope(key: &str) -> Scope {
        Scope {
            space: SpaceId::local(),
            project: "p".parse().unwrap(),
            lifetime: Lifetime::Agent,
            key: Some(key.to_owned()),
            agent: None,
        }
    }

    #[test]
    fn names_are_short_and_plain() {
        let long = "x".repeat(500);
        for key in ["", "Ann", "agent:main/1", "../../etc", "--rm", "é", &long] {
            for prefix in ["glovebox-", "", "--", &long] {
                let name = scope(key).name(prefix, "h");
                assert!((1..=63).contains(&name.len()), "{name}");
                assert!(!name.starts_with('-') && !name.ends_with('-'), "{name}");
                let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
                assert!(name.bytes().all(plain), "{name}");
            }
        }
        assert!(
            scope("Agent One")
                .name("glovebox-", "h")
                .starts_with("glovebox-agent-one-")
        );
    }

    #[test]
    fn a_row_is_its_scopes_and_nobody_elses() {
        let row = crate::sandboxes::sample::sandbox();
        let own = scope("ann");
        assert!(own.is_of(&row));
        for change in [
            |it: &mut Scope| it.space = "other".parse().unwrap(),
            |it: &mut Scope| it.project = "q".parse().unwrap(),
            |it: &mut Scope| it.lifetime = Lifetime::Session,
            |it: &mut Scope| it.key = Some("bob".to_owned()),
            |it: &mut Scope| it.key = None,
            |it: &mut Scope| it.agent = Some("ann".to_owned()),
        ] {
            let mut other = scope("ann");
            change(&mut other);
            assert!(!other.is_of(&row), "{other:?}");
        }
    }

    #[test]
    fn scopes_that_look_alike_have_names_of_their_own() {
        let mut all = vec![
            scope("a b"),
            scope("a-b"),
            scope("A-B"),
            scope(&"y".repeat(64)),
            scope(&"y".repeat(65)),
        ];
        for change in [
            |it: &mut Scope| it.space = "other".parse().unwrap(),
            |it: &mut Scope| it.project = "q".parse().unwrap(),
            |it: &mut Scope| it.lifetime = Lifetime::Session,
            |it: &mut Scope| it.agent = Some("ann".to_owned()),
            |it: &mut Scope| it.agent = Some("bob".to_owned()),
        ] {
            let mut other = scope("a b");
            change(&mut other);
            all.push(other);
        }
        let names: HashSet<_> = all.iter().map(|it| it.name("glovebox-", "h")).collect();
        assert_eq!(names.len(), all.len());
        let there = all[0].name("glovebox-", "another installation");
        assert!(!names.contains(&there));
    }
}
