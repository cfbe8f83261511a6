//! The escape probes: what stands on the host while they run, how they are run inside and outside,
//! and the table of both.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::{Caller, Column, Helper, Trial, python};

const PROBE: &str = include_str!("../escape/probe.py");

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Held,
    Crossed,
    Skipped,
    /// A matter of taste, said by the probe and judged by nobody.
    Noted,
}

#[derive(Debug, Clone)]
pub struct Row {
    pub id: String,
    pub class: String,
    pub verdict: Verdict,
    pub detail: String,
}

/// Canaries, a process, sockets and memory of the host, for as long as this lives.
#[derive(Debug)]
pub struct Fixtures {
    helper: Helper,
    place: TempDir,
    canaries: Vec<NamedTempFile>,
    /// Below /usr, so that it is shown inside, and nobody's: a broken sandbox may ruin it.
    readonly: NamedTempFile,
    pub secret: String,
    tag: String,
}

impl Fixtures {
    /// # Panics
    /// When the host does not let them be made.
    pub fn new(trial: &Trial) -> Self {
        let place = tempfile::tempdir().expect("make a directory");
        open_to_all(place.path(), 0o777);
        let tag = format!("sentinel-{}", trial.tag());
        let arguments = [place.path().to_str().unwrap_or_default(), &tag];
        let helper = Helper::start(include_str!("host.py"), &arguments);
        let homes = ["/tmp", "/var/tmp", "/dev/shm", "/root"].map(PathBuf::from);
        let canaries = homes
            .iter()
            .chain([&trial.home().to_owned()])
            .map(|directory| temporary("glovebox-canary-", directory))
            .collect();
        let secret: String = trial
            .tag()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        Self {
            helper,
            place,
            canaries,
            readonly: temporary("glovebox-readonly-", Path::new("/usr/local/share")),
            secret: format!("{secret}HostSecretOfTheTest"),
            tag,
        }
    }

    pub fn counts(&mut self) -> Value {
        self.helper.ask("counts")
    }

    pub fn readonly(&self) -> &Path {
        self.readonly.path()
    }

    pub fn canaries(&self) -> impl Iterator<Item = &Path> {
        self.canaries.iter().map(NamedTempFile::path)
    }

    fn canary_list(&self) -> String {
        let paths: Vec<_> = self.canaries().map(|path| path.to_string_lossy()).collect();
        paths.join(":")
    }

    fn value(&self, key: &str) -> String {
        match &self.helper.ready[key] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// What both our probes and the corpus are told, under their own names.
    fn facts(&self, trial: &Trial) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            ("CANARIES", self.canary_list()),
            (
                "SHADOW",
                digest(&fs::read("/etc/shadow").unwrap_or_default()),
            ),
            ("STATE", trial.state().to_string_lossy().into_owned()),
            ("TAG", self.tag.clone()),
            ("SENTINEL", self.helper.pid().to_string()),
            ("NAMESPACES", namespaces()),
            ("HOSTNAME", hostname()),
            ("TCP", self.value("tcp")),
            ("UDP", self.value("udp")),
            ("ABSTRACT", self.value("abstract")),
            ("PATH_SOCKET", self.value("path")),
            ("SHM", self.value("shm")),
            ("CANARY_DIGEST", digest(self.secret.as_bytes())),
            (
                "READONLY",
                self.readonly.path().to_string_lossy().into_owned(),
            ),
            ("SESSION", session()),
        ])
    }

    /// `env` with everything our probes want to know, to put before their command.
    pub fn environment(&self, trial: &Trial) -> Vec<String> {
        let facts = self.facts(trial);
        facts
            .iter()
            .map(|(key, value)| format!("PROBE_{key}={value}"))
            .collect()
    }

    /// The same for the corpus of probes beside the repository, with limits to run into.
    pub fn corpus_environment(&self, trial: &Trial, work: &str) -> Vec<String> {
        let facts = self.facts(trial);
        [
            ("CANARY_FILES", facts["CANARIES"].clone()),
            ("HOST_SHADOW_SHA", facts["SHADOW"].clone()),
            ("SENTINEL_TAG", facts["TAG"].clone()),
            ("SENTINEL_PID", facts["SENTINEL"].clone()),
            ("HOST_NS", facts["NAMESPACES"].clone()),
            ("LOOPBACK_PORT", facts["TCP"].clone()),
            ("ABSTRACT", facts["ABSTRACT"].clone()),
            ("SHM_KEY", facts["SHM"].clone()),
            ("HOST_SECRET_SHA", facts["CANARY_DIGEST"].clone()),
            (
                "CANARY_WRITE",
                self.canaries[0].path().to_string_lossy().into_owned(),
            ),
            ("NET", "none".to_owned()),
            ("WORK", work.to_owned()),
            ("PIDS_CAP", "128".to_owned()),
            ("MEM_CAP_MB", "512".to_owned()),
            ("DISK_CAP_MB", "192".to_owned()),
            ("FD_CAP", "20000".to_owned()),
        ]
        .map(|(key, value)| format!("SBX_{key}={value}"))
        .to_vec()
    }

    /// The probes on the host itself, as root, with a copy of what they may change.
    pub fn control(&self, trial: &Trial) -> Vec<Row> {
        let copy = NamedTempFile::new().expect("make a file");
        fs::write(copy.path(), "may be changed").expect("write a file");
        let output = Command::new("env")
            .args(self.environment(trial))
            .arg(format!("PROBE_READONLY={}", copy.path().display()))
            .arg(format!("PROBE_SUPERVISOR={}", self.helper.pid()))
            .arg(format!("PROBE_WORK={}", self.place.path().display()))
            .arg(format!("HOST_ENVIRONMENT={}", self.secret))
            .args([python(), "-c", PROBE])
            .current_dir(self.place.path())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .expect("start the probes");
        parse_rows(&output.stdout)
    }
}

/// The source of our probes, for whoever runs them in another way.
pub fn probe_source() -> &'static str {
    PROBE
}

/// What the probes are told inside a sandbox, as `KEY=VALUE`.
pub fn inside(fixtures: &Fixtures, trial: &Trial) -> Vec<String> {
    let mut told = fixtures.environment(trial);
    told.extend(["PROBE_SUPERVISOR=1", "PROBE_RESOLVE=1"].map(str::to_owned));
    told
}

/// Our probes inside a native sandbox of this trial.
///
/// # Panics
/// When Glovebox itself fails.
pub fn own_probe(trial: &Trial, fixtures: &Fixtures) -> Vec<Row> {
    own_probe_in(Column::Native, trial, fixtures)
}

/// Our probes inside a sandbox of this trial.
///
/// # Panics
/// When Glovebox itself fails.
pub fn own_probe_in(column: Column, trial: &Trial, fixtures: &Fixtures) -> Vec<Row> {
    trial.put("probe.py", PROBE);
    let mut command = vec!["/usr/bin/env".to_owned()];
    command.extend(inside(fixtures, trial));
    // gVisor lets a program end its own sandbox, and the probes with it.
    command.extend((column != Column::Runsc).then(|| "PROBE_FIRST=1".to_owned()));
    command.extend([python(), "probe.py"].map(str::to_owned));
    // gVisor's own threads count against the limit of processes.
    let pids = if column == Column::Runsc {
        "1024"
    } else {
        "64"
    };
    let output = column
        .dress(trial.run(command))
        .with(["--pids", pids, "--memory", "512M", "--timeout", "90s"])
        .outside("HOST_ENVIRONMENT", &fixtures.secret)
        .plain();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    parse_rows(&output.stdout)
}

/// The corpus beside the repository, as one file, if it is there; in CI it has to be.
///
/// # Panics
/// In CI without it.
pub fn bundle_rows() -> Option<String> {
    let Some(script) = crate::beside_the_repository("shared/corpora/probes/bundle.sh") else {
        crate::missing("no corpus of probes beside the repository");
        return None;
    };
    let output = Command::new("sh")
        .arg(script)
        .output()
        .expect("bundle the corpus");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub fn parse_rows(lines: &[u8]) -> Vec<Row> {
    let verdict = |word: &str| match word {
        "held" | "PASS" => Verdict::Held,
        "crossed" | "FAIL" => Verdict::Crossed,
        "INFO" => Verdict::Noted,
        _ => Verdict::Skipped,
    };
    String::from_utf8_lossy(lines)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|row| row["id"].is_string())
        .map(|row| Row {
            id: row["id"].as_str().unwrap_or_default().to_owned(),
            class: row["class"].as_str().unwrap_or_default().to_owned(),
            verdict: verdict(row["verdict"].as_str().unwrap_or_default()),
            detail: row["detail"].as_str().unwrap_or_default().to_owned(),
        })
        .collect()
}

pub fn print_table(inside: &[Row], outside: &[Row]) {
    println!(
        "{:<38} {:<16} {:<8} {:<8} detail inside",
        "id", "class", "inside", "outside"
    );
    for row in inside {
        let control = outside.iter().find(|other| other.id == row.id);
        let control = control.map_or("-".to_owned(), |other| format!("{:?}", other.verdict));
        println!(
            "{:<38} {:<16} {:<8} {:<8} {}",
            row.id,
            row.class,
            format!("{:?}", row.verdict),
            control,
            row.detail.chars().take(60).collect::<String>()
        );
    }
    for (name, rows) in [("inside", inside), ("outside", outside)] {
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        println!(
            "{name}: {} held, {} crossed, {} skipped, {} noted",
            count(Verdict::Held),
            count(Verdict::Crossed),
            count(Verdict::Skipped),
            count(Verdict::Noted)
        );
    }
}

fn temporary(prefix: &str, directory: &Path) -> NamedTempFile {
    let file = tempfile::Builder::new()
        .prefix(prefix)
        .tempfile_in(directory)
        .expect("make a canary");
    fs::write(file.path(), "a canary of the host").expect("write a canary");
    open_to_all(file.path(), 0o666);
    file
}

/// Only isolation is to protect it, not its mode.
fn open_to_all(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("open it to all");
}

fn namespaces() -> String {
    let list = fs::read_dir("/proc/self/ns").expect("list the namespaces");
    let names: Vec<String> = list
        .flatten()
        .filter(|entry| {
            !entry
                .file_name()
                .to_string_lossy()
                .ends_with("_for_children")
        })
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?;
            Some(format!(
                "{}={}",
                entry.file_name().to_string_lossy(),
                target.to_string_lossy()
            ))
        })
        .collect();
    names.join(",")
}

fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Our session's number. It is 0 where the session was begun outside our pid namespace, as when a
/// container starts the tests; `getsid` of rustix cannot say that.
fn session() -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    after_name.split_whitespace().nth(3).unwrap().to_owned()
}

/// SHA-256 by the tool every host has; the tests need no library for one number.
fn digest(content: &[u8]) -> String {
    use std::io::Write;
    let mut child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start sha256sum");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(content).expect("write to sha256sum");
    drop(input);
    let output = child.wait_with_output().expect("hear sha256sum");
    String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

impl Fixtures {
    /// Nobody reached anything: what only the host can see.
    ///
    /// # Panics
    /// When somebody did.
    pub fn assert_untouched(&mut self, caller: Caller) {
        let counts = self.counts();
        for (name, count) in counts.as_object().into_iter().flatten() {
            assert_eq!(
                count, 0,
                "{caller:?}: `{name}` of the host was reached: {counts}"
            );
        }
        for path in self.canaries().chain([self.readonly()]) {
            let content = fs::read_to_string(path).unwrap_or_default();
            assert_eq!(
                content,
                "a canary of the host",
                "{} was changed",
                path.display()
            );
        }
    }
}
