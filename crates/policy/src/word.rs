//! The closed vocabularies of policy as the words that people write.

use glovebox_model::{
    Access, ApprovalMode, BackendName, Guarantee, Lifetime, LimitsDemand, NetworkMode, Permit,
    Pull, SecurityMode, Tier,
};

pub(crate) trait Word: Copy + Sized + 'static {
    const ALL: &'static [Self];
    fn word(self) -> &'static str;

    fn from_word(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.word() == text)
    }

    fn words() -> Vec<&'static str> {
        Self::ALL.iter().map(|it| it.word()).collect()
    }
}

impl Word for Tier {
    const ALL: &'static [Self] = &Tier::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for ApprovalMode {
    const ALL: &'static [Self] = &ApprovalMode::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for Permit {
    const ALL: &'static [Self] = &Permit::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for NetworkMode {
    const ALL: &'static [Self] = &NetworkMode::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for Access {
    const ALL: &'static [Self] = &[Self::None, Self::Ro, Self::Rw];
    fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ro => "ro",
            Self::Rw => "rw",
        }
    }
}

impl Word for SecurityMode {
    const ALL: &'static [Self] = &[Self::Permissive, Self::Strict];
    fn word(self) -> &'static str {
        match self {
            Self::Permissive => "permissive",
            Self::Strict => "strict",
        }
    }
}

impl Word for LimitsDemand {
    const ALL: &'static [Self] = &[Self::Supervised, Self::Kernel];
    fn word(self) -> &'static str {
        match self {
            Self::Supervised => "supervised",
            Self::Kernel => "kernel",
        }
    }
}

impl Word for BackendName {
    const ALL: &'static [Self] = &BackendName::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for Guarantee {
    const ALL: &'static [Self] = &Guarantee::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for Lifetime {
    const ALL: &'static [Self] = &Lifetime::ALL;
    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Word for Pull {
    const ALL: &'static [Self] = &[Self::Never, Self::Missing];
    fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Missing => "missing",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round<T: Word + PartialEq + std::fmt::Debug + serde::Serialize>() {
        for it in T::ALL {
            assert_eq!(T::from_word(it.word()), Some(*it));
            let json = serde_json::to_string(it).unwrap();
            assert_eq!(json, format!("\"{}\"", it.word()));
        }
    }

    #[test]
    fn the_words_of_the_configuration_are_the_words_of_the_api() {
        round::<Tier>();
        round::<ApprovalMode>();
        round::<Permit>();
        round::<NetworkMode>();
        round::<Access>();
        round::<SecurityMode>();
        round::<LimitsDemand>();
        round::<BackendName>();
        round::<Guarantee>();
        round::<Lifetime>();
        round::<Pull>();
    }
}
