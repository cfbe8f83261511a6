//! What never starts without a sandbox.

use glovebox_backend::{Host, Place};
use glovebox_model::{
    Access, BackendName, ByteString, Code, Guarantee, LimitsDemand, Profile, SecurityMode,
};

use crate::bench::{Bench, order};

#[test]
fn variables_that_make_something_else_run() {
    let bench = Bench::new();
    for (name, value) in [
        ("PATH", "/workspace/work"),
        ("HOME", "/workspace/work"),
        ("USER", "root"),
        ("LD_PRELOAD", "/tmp/x.so"),
        ("DYLD_INSERT_LIBRARIES", "x"),
        ("NODE_OPTIONS", "--require x"),
        ("PYTHONPATH", "."),
        ("BASH_ENV", "x"),
        ("ENV", "x"),
        ("IFS", "x"),
        ("PERL5OPT", "-Mx"),
        ("RUBYOPT", "-rx"),
        ("GIT_SSH_COMMAND", "x"),
        ("GIT_PAGER", "x"),
        ("PAGER", "x"),
        ("npm_config_script_shell", "x"),
    ] {
        let mut asked = order(&["touch", "ran"]);
        let text = |text: &str| ByteString::try_from(text).unwrap();
        asked
            .env
            .retain(|(key, _)| key.as_bytes() != name.as_bytes());
        asked.env.push((text(name), text(value)));
        let error = bench.run(&asked).unwrap_err();
        assert_eq!(error.code, Code::PolicyDenied, "{name}");
        assert!(error.message.contains(name), "{error}");
        assert!(error.hints[0].contains("leave out"), "{error:?}");
    }
    assert!(!bench.work().join("ran").exists());
}

#[test]
fn what_only_a_sandbox_gives() {
    let plain = Bench::new();
    let refused = |code: Code, change: fn(&mut Profile)| {
        let mut bench = Bench::new();
        change(&mut bench.profile);
        let error = Host::open(&bench.spec()).unwrap_err();
        assert_eq!(error.code, code, "{error}");
        assert!(!error.hints.is_empty(), "{error}");
    };
    assert!(Host::open(&plain.spec()).is_ok());
    refused(Code::PolicyDenied, |it| it.security = SecurityMode::Strict);
    refused(Code::PolicyDenied, |it| it.backend = None);
    refused(Code::PolicyDenied, |it| {
        it.backend = Some(BackendName::Native)
    });
    let unavailable = Code::BackendUnavailable;
    refused(unavailable, |it| it.require = [Guarantee::NoNetwork].into());
    refused(unavailable, |it| {
        it.require = [Guarantee::MemoryLimit].into()
    });
    refused(unavailable, |it| it.limits_demand = LimitsDemand::Kernel);
    refused(unavailable, |it| it.image = Some("tools:1".to_owned()));
    refused(unavailable, |it| it.runtime = Some("runsc".to_owned()));
    let mut spec = plain.spec();
    spec.work = Place::Empty;
    assert_eq!(Host::open(&spec).unwrap_err().code, unavailable);
    let Place::Tree(mut tree) = plain.spec().work else {
        unreachable!()
    };
    tree.access = Access::Ro;
    spec.work = Place::Tree(tree);
    assert_eq!(Host::open(&spec).unwrap_err().code, unavailable);
}
