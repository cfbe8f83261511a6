//! Where nobody can look, nothing runs as if somebody did.

use glovebox_backend::{ContainerName, Docker, Host, Labels, Observe, Spec};
use glovebox_model::{BackendName, Code, DockerConfig, Profile};

use crate::house::{Yard, unbound};
use crate::observe::ground::{roomy, spec};

pub(crate) fn none_is_made_ahead_or_kept() {
    let yard = Yard::new();
    let profile = roomy();
    let state = yard.house.state();
    let spec = Spec {
        observe: Some(Observe::default()),
        ..unbound(&profile)
    };
    let kept = yard.native().keep(&spec, &state).unwrap_err();
    assert_eq!(kept.code, Code::BackendUnavailable);
    let warm = yard.native().warm(&spec, &state, None).unwrap_err();
    assert_eq!(warm.code, Code::BackendUnavailable);
}

pub(crate) fn elsewhere_it_is_refused() {
    let profile = Profile {
        backend: Some(BackendName::Host),
        ..roomy()
    };
    let refused = Host::open(&spec(&profile, Some(Observe::default()))).unwrap_err();
    assert_eq!(refused.code, Code::BackendUnavailable);
    assert!(refused.to_string().contains("observe"), "{refused}");
    // Before any engine is asked.
    let yard = Yard::new();
    let docker = Docker::new(DockerConfig::default(), &yard.house.state()).unwrap();
    let name = ContainerName::of("glovebox-test-", "observe").unwrap();
    let profile = roomy();
    let spec = spec(&profile, Some(Observe::default()));
    let refused = docker.open(&spec, &name, &Labels::default()).unwrap_err();
    assert_eq!(refused.code, Code::BackendUnavailable);
    assert!(refused.to_string().contains("observe"), "{refused}");
}
