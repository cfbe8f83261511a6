//! Whose cache it is. Two caches share a directory only if space, owner and name are all the same,
//! byte for byte.

use glovebox_model::{Access, Code, Error, Result, SpaceId, Stage};
use sha2::{Digest, Sha256};

use super::name::CacheName;
use crate::hex::hex;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheMode {
    /// Filled by an operator; everybody in the space reads it and nobody writes it.
    Shared,
    /// One for each user, who reads and writes it alone.
    PerUser,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CacheOwner {
    Everybody,
    User(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CacheKey {
    space: SpaceId,
    owner: CacheOwner,
    name: CacheName,
}

impl CacheKey {
    /// Without a user there is no cache of a user: all who have none would share it.
    pub fn new(
        space: &SpaceId,
        user: Option<&str>,
        name: CacheName,
        mode: CacheMode,
    ) -> Result<Self> {
        let owner = match (mode, user) {
            (CacheMode::Shared, _) => CacheOwner::Everybody,
            (CacheMode::PerUser, Some(user)) if !user.is_empty() => {
                CacheOwner::User(user.to_owned())
            }
            (CacheMode::PerUser, _) => {
                return Err(Error::new(
                    Code::InvalidArgument,
                    Stage::Resolve,
                    format!("cache `{name}` belongs to a user, and the call has none"),
                )
                .hint("give a `user_id`, or use a shared cache"));
            }
        };
        Ok(Self {
            space: space.clone(),
            owner,
            name,
        })
    }

    pub fn space(&self) -> &SpaceId {
        &self.space
    }

    pub fn name(&self) -> &CacheName {
        &self.name
    }

    pub fn owner(&self) -> &CacheOwner {
        &self.owner
    }

    /// What a sandbox may do with it: decided by whose it is and by nothing else.
    pub fn access(&self) -> Access {
        match self.owner {
            CacheOwner::Everybody => Access::Ro,
            CacheOwner::User(_) => Access::Rw,
        }
    }

    /// The directory of all caches of this owner. Lengths go in front, so that no two pairs of
    /// space and user run together to the same bytes; the prefix keeps the two kinds apart.
    pub(super) fn scope(&self) -> String {
        let (prefix, user) = match &self.owner {
            CacheOwner::Everybody => (SHARED, ""),
            CacheOwner::User(user) => (USER, user.as_str()),
        };
        let mut digest = Sha256::new();
        digest.update(b"glovebox cache 1\0");
        for part in [prefix, self.space.as_str(), user] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        format!("{prefix}{}", hex(&digest.finalize()))
    }
}

pub(super) const SHARED: &str = "shared-";
pub(super) const USER: &str = "user-";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(space: &str, user: &str, mode: CacheMode) -> CacheKey {
        let name = "pip".parse().unwrap();
        CacheKey::new(&space.parse().unwrap(), Some(user), name, mode).unwrap()
    }

    #[test]
    fn names_that_run_together_stay_apart() {
        let user = |space, user| key(space, user, CacheMode::PerUser).scope();
        assert_ne!(user("a", "bc"), user("ab", "c"));
        assert_ne!(user("a", "b"), user("a", "B"));
        assert_ne!(user("a", "b"), user("a", "b "));
        assert_ne!(
            user("a", "é"),
            user("a", "e\u{301}"),
            "two spellings, two users"
        );
        assert_ne!(
            user("a", "shared-"),
            key("a", "x", CacheMode::Shared).scope()
        );
        assert_eq!(
            key("a", "x", CacheMode::Shared).scope(),
            key("a", "y", CacheMode::Shared).scope()
        );
    }

    proptest! {
        #[test]
        fn another_owner_has_another_directory(
            a in ("[a-c]{1,3}", "\\PC{1,6}"),
            b in ("[a-c]{1,3}", "\\PC{1,6}"),
        ) {
            let (first, second) = (
                key(&a.0, &a.1, CacheMode::PerUser).scope(),
                key(&b.0, &b.1, CacheMode::PerUser).scope(),
            );
            prop_assert_eq!(a == b, first == second);
            prop_assert_ne!(&first, &key(&a.0, &a.1, CacheMode::Shared).scope());
            let plain = first.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
            prop_assert!(plain);
        }
    }
}
