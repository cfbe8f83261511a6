//! R17, D0-2, D0-4, D0-6, D0-13: what a hostile program leaves in its artifacts.

use std::time::{Duration, Instant};

use glovebox_capture::Secrets;
use glovebox_model::{
    ByteString, Correlation, Exec, ExecId, Isolation, Mode, PartialProfile, ProjectId, Risk,
    SpaceId, Status, Stream, Usage, Writes,
};
use glovebox_workspace::{
    Captured, Collected, Dir, DropReason, ExecFiles, Kind, Layout, Manifest, RelPath,
};
use sha2::{Digest, Sha256};

use crate::files::place::{Place, place, place_in_memory, rel};

const EXEC: [u8; 16] = [7; 16];

struct Run {
    place: Place,
    files: ExecFiles,
    stdout: Captured,
    stderr: Captured,
}

fn run() -> Run {
    run_in(place())
}

fn run_in(place: Place) -> Run {
    let layout = Layout::open(Dir::open_trusted(&place.inside).unwrap()).unwrap();
    let project = layout.project(&"p".parse::<ProjectId>().unwrap()).unwrap();
    let files = project.begin(&ExecId::from_random(EXEC), &[]).unwrap();
    let mut stdout = files.sink(Stream::Stdout, 100).unwrap();
    stdout.push(b"out\n");
    let stdout = stdout.finish();
    let stderr = files.sink(Stream::Stderr, 100).unwrap().finish();
    Run {
        place,
        files,
        stdout,
        stderr,
    }
}

impl Run {
    fn dir(&self) -> &Dir {
        self.files.artifacts()
    }

    fn file(&self, path: &str, size: usize) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.dir().mkdir_all(&rel(parent), 0o755).unwrap();
        }
        self.dir()
            .write(&rel(path), &vec![b'x'; size], 0o644)
            .unwrap();
    }

    fn settle(&self, cap: u64) -> Collected {
        self.files
            .settle(&self.stdout, &self.stderr, cap, &Secrets::none())
            .unwrap()
    }

    fn seal(&self, cap: u64) -> Manifest {
        let collected = self.settle(cap);
        self.files.seal(&record(), collected).unwrap()
    }
}

fn kept(collected: &Collected) -> Vec<String> {
    let list = collected.artifacts();
    list.iter()
        .map(|artifact| artifact.path.display())
        .collect()
}

fn drops(collected: &Collected) -> Vec<(String, DropReason)> {
    let list = &collected.dropped().files;
    list.iter()
        .map(|drop| (drop.path.display(), drop.reason))
        .collect()
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn record() -> Exec {
    let text = |text: &str| ByteString::try_from(text).unwrap();
    Exec {
        exec_id: ExecId::from_random(EXEC),
        client_id: None,
        project_id: "p".parse().unwrap(),
        mode: Mode::Run,
        skill_id: None,
        skill_version: None,
        skill_digest: None,
        session: None,
        cmd: text("env"),
        args: vec![],
        cwd: text("/workspace/work"),
        env_keys: vec!["API_KEY".parse().unwrap()],
        image: None,
        sandbox_id: None,
        status: Status::Succeeded,
        queue_position: None,
        abandoned: false,
        exit_code: Some(0),
        signal: None,
        timed_out: false,
        killed: false,
        limit_hit: None,
        started_at: Some(jiff::Timestamp::UNIX_EPOCH),
        ended_at: None,
        duration_ms: Some(1),
        stdout: "out\n".into(),
        stderr: String::new(),
        stdout_bytes: 4,
        stderr_bytes: 0,
        stdout_truncated: false,
        stderr_truncated: false,
        stdout_path: None,
        stderr_path: None,
        artifacts_dir: None,
        artifacts: vec![],
        artifacts_dropped: 0,
        writes: Writes::default(),
        changes: None,
        snapshot_before: None,
        asked: PartialProfile::default(),
        ruling: None,
        approval_id: None,
        consent: None,
        backend: None,
        runtime: None,
        notes: Vec::new(),
        isolation: Isolation::default(),
        policy_snapshot: None,
        capped: vec![],
        risk: Risk::default(),
        usage: Usage::default(),
        traffic: None,
        secrets: vec![],
        effects: vec![],
        gates: vec![],
        effect_count: None,
        preview: None,
        verdict: None,
        error: None,
        receipt: None,
        ids: Correlation::of_space(SpaceId::local()),
        vouched: glovebox_model::Vouched::People,
    }
}

#[test]
fn d0_6_the_manifest_lists_every_file_that_is_there() {
    let run = run();
    run.file("a.txt", 3);
    run.file("deep/er/b.txt", 5);
    let manifest = run.seal(1000);
    assert_eq!(Manifest::read(run.dir()).unwrap(), manifest);
    let paths: Vec<_> = manifest.files.iter().map(|f| f.path.display()).collect();
    let all = [
        "a.txt",
        "deep/er/b.txt",
        "meta.json",
        "stderr.txt",
        "stdout.txt",
    ];
    assert_eq!(paths, all);
    for file in &manifest.files {
        let path = RelPath::new(file.path.as_bytes()).unwrap();
        let bytes = run.dir().read(&path, 1 << 20).unwrap();
        assert_eq!(file.size, bytes.len() as u64, "{path}");
        assert_eq!(file.hash, Some(hash(&bytes)), "{path}");
    }
    let shelf = run.place.inside.join("projects/p/artifacts");
    let left = std::fs::read_dir(shelf).unwrap().count();
    assert_eq!(left, 1, "nothing is left beside the exec's directory");
}

#[test]
fn d0_4_the_description_has_names_of_variables_and_no_output() {
    let run = run();
    run.seal(1000);
    let meta = run.dir().read(&rel("meta.json"), 1 << 20).unwrap();
    let meta: serde_json::Value = serde_json::from_slice(&meta).unwrap();
    assert_eq!(meta["env_keys"], serde_json::json!(["API_KEY"]));
    assert_eq!(meta["exit_code"], 0);
    for absent in ["stdout", "stderr", "env", "artifacts", "receipt"] {
        assert!(meta.get(absent).is_none(), "{absent}");
    }
    let sources: Vec<_> = meta["mounts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mount| mount["source"].as_str().unwrap().to_owned())
        .collect();
    let exec = ExecId::from_random(EXEC);
    let artifacts = format!("projects/p/artifacts/{exec}");
    assert_eq!(
        sources,
        ["projects/p/inputs", "projects/p/work", &artifacts]
    );
}

#[test]
fn d0_2_what_passes_the_cap_is_removed_and_reported() {
    let run = run();
    run.file("a", 40);
    run.file("b", 70);
    run.file("c", 60);
    run.file("d/e", 1);
    let collected = run.settle(100);
    assert_eq!(kept(&collected), ["a", "c"]);
    let over = [
        ("b".to_owned(), DropReason::Bytes),
        ("d/e".to_owned(), DropReason::Bytes),
    ];
    assert_eq!(drops(&collected), over);
    assert_eq!(collected.dropped().bytes, 71);
    assert!(run.dir().lstat(&rel("b")).is_err());
    let manifest = run.files.seal(&record(), collected).unwrap();
    assert_eq!(manifest.dropped.count, 2);
}

#[test]
fn d0_13_links_are_listed_and_never_followed() {
    let run = run();
    let secret = run.place.outside.join("canary");
    rustix::fs::symlinkat(&secret, run.dir(), "link").unwrap();
    rustix::fs::symlinkat(&run.place.outside, run.dir(), "dirlink").unwrap();
    let manifest = run.seal(10_000);
    for name in ["link", "dirlink"] {
        let entry = manifest.files.iter().find(|f| f.path.display() == name);
        let entry = entry.unwrap();
        assert_eq!((entry.kind, &entry.hash), (Kind::Symlink, &None));
    }
    let json = String::from_utf8(run.dir().read(&rel("manifest.json"), 1 << 20).unwrap());
    assert!(json.unwrap().contains("\"type\": \"symlink\""));
    run.place.dir.remove_all(&rel("projects")).unwrap();
    run.place.assert_outside_untouched();
}

#[test]
fn what_is_secret_is_masked_in_files_and_drops_names_and_links() {
    let run = run();
    let value = "ghp_Zk3vXq81LmNc02QpRt";
    let write = |path: &str, text: &str| {
        run.dir().write(&rel(path), text.as_bytes(), 0o644).unwrap();
    };
    write("text", &format!("before {value} after"));
    write(&format!("{value}.txt"), "named");
    rustix::fs::symlinkat(value, run.dir(), "link").unwrap();
    rustix::fs::symlinkat("text", run.dir(), "other").unwrap();
    write("hung", "nothing in it");
    run.dir().mkdir_all(&rel("below"), 0o755).unwrap();
    let base = run.place.inside.join(run.files.path());
    let none = rustix::fs::XattrFlags::empty();
    for path in [base.clone(), base.join("hung"), base.join("below")] {
        rustix::fs::setxattr(&path, "user.note", value.as_bytes(), none).unwrap();
    }
    let name = "token".parse().unwrap();
    let secrets = Secrets::compile([(name, value.as_bytes().to_vec())]).unwrap();
    let collected = run
        .files
        .settle(&run.stdout, &run.stderr, 10_000, &secrets)
        .unwrap();
    assert_eq!(kept(&collected), ["hung", "text"]);
    for path in [&base, &base.join("hung")] {
        let mut value = [0; 64];
        let left = rustix::fs::getxattr(path, "user.note", &mut value);
        assert_eq!(left, Err(rustix::io::Errno::NODATA), "{}", path.display());
    }
    assert!(!base.join("below").exists());
    let text = run.dir().read(&rel("text"), 1 << 10).unwrap();
    assert_eq!(text, b"before [secret token] after");
    let dropped = drops(&collected);
    assert_eq!(
        dropped,
        [
            ("below".to_owned(), DropReason::Secret),
            ("[secret token].txt".to_owned(), DropReason::Secret),
            ("link".to_owned(), DropReason::Secret),
        ]
    );
    let left = |name: &str| rustix::fs::readlinkat(run.dir(), name, Vec::new());
    assert!(left("link").is_err() && left("other").is_ok());
}

#[test]
fn r17_special_files_neither_block_nor_take_long() {
    let run = run();
    let base = run.place.inside.join(run.files.path());
    rustix::fs::mkfifoat(run.dir(), "fifo", rustix::fs::Mode::RUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(base.join("sock")).unwrap();
    let sparse = std::fs::File::create(base.join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    rustix::fs::symlinkat("loop", run.dir(), "loop").unwrap();
    run.file("plain", 5);
    let start = Instant::now();
    let collected = run.settle(1 << 20);
    // To read through all of the holes would take many times as long, whatever a busy disk does.
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(kept(&collected), ["plain"]);
    let sparse = ("sparse".to_owned(), DropReason::Bytes);
    assert_eq!(drops(&collected), [sparse]);
    let manifest = run.files.seal(&record(), collected).unwrap();
    let kinds: Vec<_> = manifest
        .files
        .iter()
        .filter(|file| file.hash.is_none())
        .map(|file| file.kind)
        .collect();
    assert_eq!(kinds, [Kind::Fifo, Kind::Symlink, Kind::Socket]);
}

#[test]
fn our_names_are_ours_whatever_the_guest_put_there() {
    let run = run();
    let canary = run.place.outside.join("canary");
    rustix::fs::symlinkat(&canary, run.dir(), "stdout.txt").unwrap();
    run.file("stderr.txt/deep/x", 1);
    run.file("meta.json", 9);
    rustix::fs::mkfifoat(run.dir(), "manifest.json", rustix::fs::Mode::RUSR).unwrap();
    let collected = run.settle(1000);
    let reserved: Vec<_> = drops(&collected)
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    let names = ["stdout.txt", "stderr.txt", "meta.json", "manifest.json"];
    assert_eq!(reserved, names);
    // And again between the two steps, as a survivor would.
    run.file("meta.json/deep/x", 1);
    rustix::fs::symlinkat(&canary, run.dir(), "manifest.json").unwrap();
    run.files.seal(&record(), collected).unwrap();
    assert_eq!(run.dir().read(&rel("stdout.txt"), 10).unwrap(), b"out\n");
    for name in names {
        assert_eq!(run.dir().lstat(&rel(name)).unwrap().kind, Kind::File);
    }
    run.place.dir.remove_all(&rel("projects")).unwrap();
    run.place.assert_outside_untouched();
}

#[test]
fn r15_a_tree_that_is_too_deep_is_dropped_whole() {
    let run = run_in(place_in_memory());
    let mut at = run.dir().try_clone().unwrap();
    for _ in 0..3000 {
        at.mkdir(&rel("d"), 0o755).unwrap();
        at = at.open_dir(&rel("d")).unwrap();
    }
    run.file("kept", 1);
    let collected = run.settle(1000);
    assert_eq!(kept(&collected), ["kept"]);
    let (path, reason) = drops(&collected).remove(0);
    assert_eq!(reason, DropReason::TooDeep);
    assert!(path.len() < 200 && run.dir().lstat(&rel(&path)).is_err());
    assert_eq!(collected.dropped().count, 1);
}

#[test]
fn a_directory_with_too_many_entries_is_dropped_whole() {
    let run = run_in(place_in_memory());
    let wide = run.dir().mkdir_all(&rel("wide"), 0o755).unwrap();
    for n in 0..100_001 {
        drop(wide.create(&rel(&format!("{n}")), 0o644).unwrap());
    }
    run.file("kept", 1);
    let collected = run.settle(1000);
    assert_eq!(kept(&collected), ["kept"]);
    assert_eq!(
        drops(&collected),
        [("wide".to_owned(), DropReason::Entries)]
    );
    assert!(run.dir().lstat(&rel("wide")).is_err());
}

#[test]
fn too_many_entries_at_the_top_are_cleared() {
    let run = run_in(place_in_memory());
    for n in 0..100_001 {
        drop(run.dir().create(&rel(&format!("{n}")), 0o644).unwrap());
    }
    let manifest = run.seal(1000);
    assert_eq!(manifest.files.len(), 3, "only what is ours");
    assert_eq!(manifest.dropped.count, 1);
}

#[test]
fn the_same_tree_always_gives_the_same_answer() {
    let answers: Vec<_> = (0..2)
        .map(|order| {
            let run = run();
            let mut names: Vec<_> = (0..50).map(|n| format!("d{}/f{n}", n % 7)).collect();
            if order == 1 {
                names.reverse();
            }
            for (size, name) in names.iter().enumerate() {
                let size = if order == 1 { 49 - size } else { size };
                run.file(name, size);
            }
            let collected = run.settle(500);
            (kept(&collected), drops(&collected))
        })
        .collect();
    assert_eq!(answers[0], answers[1]);
    assert!(!answers[0].0.is_empty() && !answers[0].1.is_empty());
}
