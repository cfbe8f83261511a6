//! What an exec runs in, as a column of the tables that every backend must fill.

use std::fmt;

use crate::docker::missing;
use crate::{Docker, Run, Trial, wait_until};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    Native,
    Runc,
    /// gVisor: a kernel of its own between the program and the host's.
    Runsc,
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Native => "native",
            Self::Runc => "docker/runc",
            Self::Runsc => "docker/runsc",
        })
    }
}

impl Column {
    pub const ALL: [Self; 3] = [Self::Native, Self::Runc, Self::Runsc];

    /// Whether it can be tested here. If not that is said, and in CI it is a failure.
    pub fn is_here(self) -> bool {
        let Self::Runsc = self else {
            return self == Self::Native || Docker::shared().is_some();
        };
        let found = Docker::shared().is_some_and(|docker| docker.has_runtime("runsc"));
        if !found {
            missing("the engine has no runtime `runsc`");
        }
        found
    }

    pub fn is_docker(self) -> bool {
        self != Self::Native
    }

    pub fn backend(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Runc | Self::Runsc => "docker",
        }
    }

    pub fn runtime(self) -> Option<&'static str> {
        (self == Self::Runsc).then_some("runsc")
    }

    pub fn options(self) -> Vec<&'static str> {
        let mut options = vec!["--backend", self.backend()];
        options.extend(self.runtime().into_iter().flat_map(|it| ["--runtime", it]));
        options
    }

    /// The same run in this column.
    #[must_use]
    pub fn dress(self, run: Run<'_>) -> Run<'_> {
        let run = run.with(self.options());
        match Docker::shared().filter(|_| self.is_docker()) {
            Some(docker) => run.outside("DOCKER_HOST", docker.host()),
            None => run,
        }
    }

    /// # Panics
    /// When a container of this trial's is left.
    pub fn assert_no_container(self, trial: &Trial) {
        let Some(docker) = Docker::shared().filter(|_| self.is_docker()) else {
            return;
        };
        let patience = std::time::Duration::from_secs(60);
        let gone = wait_until(patience, || docker.containers(&trial.state()).is_empty());
        assert!(gone, "left: {:?}", docker.containers(&trial.state()));
    }
}
