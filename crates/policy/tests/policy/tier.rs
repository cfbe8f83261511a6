//! What declaring a tier does.

use glovebox_model::{Access, Bytes, Code, Count, Millis, NetworkMode, PartialProfile, Tier};
use glovebox_policy::{Layer, LayerName, TierPresets, assess, resolve};

use crate::fixture::{call, capping, destinations, limit, run, server, silent};

fn declaring(tier: Tier) -> PartialProfile {
    PartialProfile {
        tier: Some(tier),
        ..silent()
    }
}

fn open_network() -> Layer {
    Layer::settings(PartialProfile {
        network: Some(NetworkMode::Allowlist),
        allow_net: Some(destinations(&["a.io:443"])),
        ..silent()
    })
}

#[test]
fn a_declared_tier_narrows_memory_and_network_whoever_declares_it() {
    for (tier, mebibytes, network) in [
        (Tier::Safe, 1024, NetworkMode::Allowlist),
        (Tier::Low, 512, NetworkMode::Allowlist),
        (Tier::Medium, 512, NetworkMode::Allowlist),
        (Tier::High, 256, NetworkMode::None),
        (Tier::Critical, 256, NetworkMode::None),
    ] {
        let by_request = run(call(declaring(tier)), &[open_network()]).unwrap();
        let skill = Layer::skill("s", declaring(tier));
        let by_skill = run(call(silent()), &[open_network(), skill]).unwrap();
        for assessed in [by_request, by_skill] {
            let profile = assessed.profile();
            assert_eq!(profile.limits.memory_bytes, Bytes::mib(mebibytes), "{tier}");
            assert_eq!(profile.network, network, "{tier}");
            assert_eq!(profile.allow_net.is_empty(), network == NetworkMode::None);
            assert_eq!(profile.limits.pids, Count(256), "{tier}");
            assert_eq!(assessed.risk().tier, tier.max(Tier::Medium));
            assert!(assessed.capped().is_empty());
        }
    }
}

#[test]
fn the_preset_never_widens_what_is_narrower_already() {
    let layers = [Layer::settings(limit("memory", "100M"))];
    let assessed = run(call(declaring(Tier::Low)), &layers).unwrap();
    assert_eq!(assessed.profile().limits.memory_bytes, Bytes::mib(100));
}

#[test]
fn the_trace_names_the_preset() {
    let assessed = run(call(declaring(Tier::High)), &[]).unwrap();
    let decisions = assessed.decisions();
    let memory = decisions.iter().find(|it| it.field == "memory").unwrap();
    assert_eq!(memory.by.layer, LayerName::Tier);
    assert_eq!(memory.by.to_string(), "the preset of tier `high`");
    assert_eq!(memory.change, "declare a lower `tier`");
}

#[test]
fn a_request_cannot_loosen_the_tier_it_declares() {
    let asked = || PartialProfile {
        allow_net: Some(destinations(&["a.io:443"])),
        tier: Some(Tier::High),
        ..limit("memory", "512M")
    };
    let error = run(call(asked()), &[open_network()]).unwrap_err();
    assert_eq!(error.code, Code::PolicyDenied);
    assert_eq!(
        error.message,
        "`memory` `512M` is more than the preset of tier `high` allows, which is `256M`"
    );
    let capped = run(capping(asked()), &[open_network()]).unwrap();
    assert_eq!(capped.profile().limits.memory_bytes, Bytes::mib(256));
    assert_eq!(capped.profile().network, NetworkMode::None);
    let fields: Vec<_> = capped.capped().iter().map(|it| it.field.as_str()).collect();
    assert_eq!(fields, ["memory", "network", "allow_net"]);
}

#[test]
fn a_request_may_ask_for_less_than_its_preset() {
    let asked = PartialProfile {
        tier: Some(Tier::High),
        ..limit("memory", "64M")
    };
    let assessed = run(call(asked), &[]).unwrap();
    assert_eq!(assessed.profile().limits.memory_bytes, Bytes::mib(64));
}

#[test]
fn the_other_fields_of_a_preset_apply_only_when_the_operator_says_so() {
    let system = server().with_presets(TierPresets::Full);
    let assessed = resolve(call(declaring(Tier::Critical)), &system, &[])
        .map(assess)
        .unwrap();
    let profile = assessed.profile();
    assert_eq!(profile.limits.wall_ms, Millis::secs(30));
    assert_eq!(profile.limits.pids, Count(10));
    assert_eq!(profile.limits.disk_bytes, Bytes::mib(100));
    assert_eq!(profile.workspace, Access::Ro);
    let mut with_key = call(declaring(Tier::Critical));
    with_key.env = vec![crate::fixture::variable("FOO", "1")];
    let error = resolve(with_key, &system, &[]).unwrap_err();
    assert_eq!(
        error.message,
        "environment key `FOO` is not among those that the preset of tier `critical` allows: `HOME, PATH`"
    );
}

#[test]
fn resolving_leaves_the_preset_to_assessing() {
    let resolved = resolve(call(declaring(Tier::High)), &server(), &[]).unwrap();
    assert_eq!(resolved.profile().limits.memory_bytes, Bytes::mib(1024));
    let assessed = assess(resolved);
    assert_eq!(assessed.profile().limits.memory_bytes, Bytes::mib(256));
}
