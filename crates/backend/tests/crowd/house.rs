//! What a sandbox needs, made for a test.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use glovebox_backend::{Cancel, Ended, Native, Order, Sink, Spec, Stream, Tree};
use glovebox_model::{
    Access, ByteString, Bytes, Count, Cpus, Limits, LimitsDemand, Millis, NetworkMode, Profile,
    Result, SecurityMode, Tier,
};
use glovebox_workspace::Dir;

/// Of every payload here, whatever the test's own process may open.
pub(crate) const OPEN_FILES: u64 = 512;

pub(crate) struct House {
    root: tempfile::TempDir,
}

impl House {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["state", "artifacts"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        Self { root }
    }

    /// Runs a line of shell.
    pub(crate) fn run(
        &self,
        native: Native,
        line: &str,
        stdin: OwnedFd,
        sink: &mut dyn Sink,
    ) -> Result<Ended> {
        let artifacts = Dir::open_trusted(&self.root.path().join("artifacts")).unwrap();
        let profile = profile();
        let spec = Spec {
            profile: &profile,
            work: None,
            inputs: None,
            artifacts: Tree {
                directory: &artifacts,
                access: Access::Rw,
            },
            toolchains: Vec::new(),
            links: Vec::new(),
        };
        let text = |text: &str| ByteString::try_from(text).unwrap();
        let order = Order {
            argv: ["sh", "-c", line].map(text).to_vec(),
            env: Vec::new(),
            cwd: text("/workspace/work"),
            path: vec![text("/usr/bin"), text("/bin")],
        };
        let prepared = native.open(&spec, &self.root.path().join("state"))?;
        let (cancel, _canceler) = Cancel::new().unwrap();
        let (ended, remains) = prepared.run(&order, &profile, &[], Some(stdin), sink, &cancel);
        drop(remains);
        ended
    }
}

fn profile() -> Profile {
    Profile {
        limits: Limits {
            wall_ms: Millis::secs(120),
            cpu_ms: Millis::secs(60),
            memory_bytes: Bytes::mib(64),
            pids: Count(32),
            cpus_milli: Cpus::whole(1),
            disk_bytes: Bytes::mib(16),
            disk_files: Count(1000),
            stdout_bytes: Bytes::mib(1),
            stderr_bytes: Bytes::mib(1),
            artifacts_bytes: Bytes::mib(1),
            open_files: Count(OPEN_FILES),
        },
        network: NetworkMode::None,
        allow_net: BTreeSet::new(),
        workspace: Access::None,
        env_allow: BTreeSet::new(),
        tier: Tier::Low,
        security: SecurityMode::default(),
        limits_demand: LimitsDemand::Supervised,
        backend: None,
        image: None,
    }
}

/// What was printed, and who waits for it.
pub(crate) struct Heard<'heard> {
    pub(crate) text: String,
    pub(crate) at_line: &'heard dyn Fn(),
}

impl Sink for Heard<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(stream, Stream::Stdout, "{text}");
        self.text.push_str(&text);
        if text.ends_with('\n') {
            (self.at_line)();
        }
    }
}
