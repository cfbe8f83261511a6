//! What is said about an engine, and what is refused without one.

use glovebox_backend::{ContainerName, Docker};
use glovebox_model::{Code, DockerConfig, Grade, Guarantee, NetworkMode};

use crate::harness::{House, Outcome, shared};

fn grade(evidence: &[glovebox_model::Evidence], guarantee: Guarantee) -> Grade {
    let mut lines = evidence.iter().filter(|it| it.guarantee == guarantee);
    lines.next().expect("a line for each").grade
}

#[test]
fn evidence_for_each_guarantee() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let house = House::new(&host, "runc");
    let probe = house.docker.probe();
    let facts = probe.usable?;
    assert_eq!(facts.image_present, Some(true));
    assert!(facts.runtimes.contains_key("runsc"));
    assert_eq!(probe.evidence.len(), Guarantee::ALL.len());
    assert_eq!(
        grade(&probe.evidence, Guarantee::OwnKernel),
        Grade::Unavailable
    );
    assert_eq!(
        grade(&probe.evidence, Guarantee::OwnUsers),
        Grade::Unavailable
    );
    assert_eq!(
        grade(&probe.evidence, Guarantee::SyscallFilter),
        Grade::Kernel
    );
    let run = house.docker.probe_run()?;
    assert_eq!(grade(&run, Guarantee::OwnKernel), Grade::Unavailable);
    let config = DockerConfig {
        runtime: Some("runsc".to_owned()),
        ..DockerConfig::default()
    };
    let house = House::with(&host, "runsc", config);
    let run = house.docker.probe_run()?;
    assert_eq!(grade(&run, Guarantee::OwnKernel), Grade::Kernel);
    Ok(())
}

#[test]
fn a_missing_image_says_how_to_get_it() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let mut house = House::new(&host, "runc");
    house.profile.image = Some("nowhere.example/none:1".to_owned());
    let refused = house.run(&["true"]);
    assert_eq!(refused.error().code, Code::BackendUnavailable);
    let hints = refused.error().hints.join(" ");
    assert!(
        hints.contains("docker pull nowhere.example/none:1"),
        "{hints}"
    );
    assert!(!house.docker.image_present("nowhere.example/none:1")?);
    house.profile.image = Some("--privileged".to_owned());
    assert_eq!(house.run(&["true"]).error().code, Code::InvalidArgument);
    Ok(())
}

#[test]
fn what_cannot_be_enforced_is_refused() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let mut house = House::new(&host, "runc");
    house.profile.network = NetworkMode::Allowlist;
    assert_eq!(house.run(&["true"]).error().code, Code::BackendUnavailable);
    house.profile.network = NetworkMode::None;
    house.profile.runtime = Some("kata".to_owned());
    let refused = house.run(&["true"]);
    assert!(
        refused.error().to_string().contains("runsc"),
        "{}",
        refused.error()
    );
    house.profile.runtime = None;
    house.profile.require.insert(Guarantee::FileRules);
    assert_eq!(house.run(&["true"]).error().code, Code::BackendUnavailable);
    Ok(())
}

#[test]
fn ports_of_a_kept_container() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let network = format!("glovebox-test-{}", std::process::id());
    let config = DockerConfig {
        network: Some(network.clone()),
        publish: vec![8080],
        ..DockerConfig::default()
    };
    let mut house = House::with(&host, "runc", config);
    house.profile.network = NetworkMode::Unrestricted;
    house.engine(&["network", "create", &network]);
    let name = house.name();
    let outcome = house.keep(&name).and_then(|kept| {
        let ports = house.docker.ports(&name);
        drop(kept.close());
        ports
    });
    house.engine(&["network", "rm", &network]);
    let ports = outcome?;
    assert_eq!(ports.len(), 1, "{ports:?}");
    assert_eq!(ports[0].0, 8080);
    assert!(ports[0].1.ip().is_loopback());
    assert_eq!(
        house.docker.ports(&name).err().map(|it| it.code),
        Some(Code::NotFound)
    );
    Ok(())
}

#[test]
fn absent_is_fine_for_removal() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    let house = House::new(&host, "runc");
    house
        .docker
        .remove(&ContainerName::parse("glovebox-test-not-there")?)?;
    assert!(
        house
            .docker
            .find(&ContainerName::parse("glovebox-test-not-there")?)?
            .is_none()
    );
    Ok(())
}

#[test]
fn without_an_engine_everything_is_unavailable() -> Outcome {
    let state = tempfile::tempdir()?;
    let config = DockerConfig {
        cli: "no-such-docker".to_owned(),
        ..DockerConfig::default()
    };
    let docker = Docker::new(config, state.path())?;
    let probe = docker.probe();
    assert_eq!(
        probe.usable.err().map(|it| it.code),
        Some(Code::BackendUnavailable)
    );
    assert!(
        probe
            .evidence
            .iter()
            .all(|it| it.grade == Grade::Unavailable)
    );
    Ok(())
}

#[test]
fn an_engine_outside_sees_the_state_elsewhere() -> Outcome {
    let Some(host) = shared() else { return Ok(()) };
    // As if ours were the inside of a container and theirs the volume behind it.
    let theirs = tempfile::tempdir()?;
    for name in ["work", "inputs", "artifacts"] {
        let dir = theirs.path().join(name);
        std::fs::create_dir(&dir)?;
        std::fs::write(dir.join("fact"), format!("theirs {name}\n"))?;
    }
    let config = DockerConfig {
        host_state_dir: Some(theirs.path().display().to_string()),
        ..DockerConfig::default()
    };
    let house = House::rooted(&host, "runc", config);
    let said = house.run(&["cat", "/workspace/work/fact", "/workspace/inputs/fact"]);
    assert_eq!(
        said.stdout, "theirs work\ntheirs inputs\n",
        "{}",
        said.stderr
    );
    // A file of ours is not seen there, so this cannot be right.
    let refused = house.docker.probe_run().err();
    let hints = refused.map(|it| it.hints.join(" ")).unwrap_or_default();
    assert!(hints.contains("host_state_dir"), "{hints}");
    Ok(())
}
