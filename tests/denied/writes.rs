//! Nothing that is denied changes, and what cannot be held is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use support::Caller;

use crate::ground::{Ground, LITERAL, SECRET, WILD};

#[test]
fn what_would_change_a_denied_path_waits_whole() {
    for (caller, code) in [
        (Caller::Root, "import shutil; shutil.rmtree('dir')"),
        (Caller::Root, "import os; os.remove('.env')"),
        (
            Caller::Root,
            "import os; os.remove('.env'); open('.env', 'w').write('mine')",
        ),
        (Caller::Root, "open('later', 'w').write('mine')"),
        (Caller::Root, "import os; os.symlink('plain', 'later')"),
        (Caller::Root, "import os; os.remove('other-name')"),
        (Caller::User, "import shutil; shutil.rmtree('dir')"),
        (Caller::User, "open('later', 'w').write('mine')"),
    ] {
        for paths in [LITERAL, WILD] {
            let Some(ground) = Ground::new(caller) else {
                return;
            };
            let work = ground.work();
            let code = format!("open('made', 'w').write('x')\n{code}");
            let outcome = ground.imports(paths, &code).json();
            let said = format!("{code} {paths}: {}{}", outcome.record, outcome.stderr);
            assert_eq!(outcome.text("verdict"), "hold", "{said}");
            assert!(
                outcome.record["notes"].to_string().contains("rule `keys`"),
                "{said}"
            );
            let kept = ground
                .trial
                .glovebox()
                .env("GLOVEBOX_CONFIG", ground.trial.home().join("glovebox.toml"))
                .args(["workspace", "keep", outcome.text("exec_id")])
                .output()
                .unwrap();
            let answer = String::from_utf8_lossy(&kept.stderr);
            assert!(
                !kept.status.success() && answer.contains("rule `keys`"),
                "{answer}"
            );
            for verb in ["changes", "diff"] {
                let words: &[&str] = match verb {
                    "diff" => &["diff"],
                    _ => &["workspace", "changes"],
                };
                let shown = ground
                    .trial
                    .glovebox()
                    .env("GLOVEBOX_CONFIG", ground.trial.home().join("glovebox.toml"))
                    .args(words)
                    .arg(outcome.text("exec_id"))
                    .output()
                    .unwrap();
                let text = String::from_utf8_lossy(&shown.stdout);
                assert!(text.contains("made"), "{verb}: {text}{said}");
                assert!(!text.contains(SECRET), "{verb}: {text}{said}");
            }
            assert!(
                !work.join("made").exists() && !work.join("later").exists(),
                "{said}"
            );
            for name in [
                ".env",
                ".ssh/id",
                "other-name",
                "dir/deep/x.pem",
                "dir/pem-name",
            ] {
                let found = fs::read_to_string(work.join(name)).unwrap_or_default();
                assert_eq!(found.trim(), SECRET, "{name}: {said}");
            }
            ground.trial.end();
        }
    }
}

#[test]
fn other_changes_are_kept_at_the_end() {
    for caller in [Caller::Root, Caller::User] {
        for paths in [LITERAL, WILD] {
            let Some(ground) = Ground::new(caller) else {
                return;
            };
            let code = "open('dir/made', 'w').write('x')";
            let outcome = ground.imports(paths, code).json();
            outcome.expect("succeeded", 0, None);
            assert_eq!(outcome.text("verdict"), "keep", "{}", outcome.record);
            let made = fs::read_to_string(ground.work().join("dir/made"));
            assert_eq!(made.unwrap(), "x", "{}", outcome.record);
            ground.trial.end();
        }
    }
}

#[test]
fn what_cannot_be_held_is_refused_by_the_name_of_its_rule() {
    for (caller, paths, options, says) in [
        (
            Caller::Root,
            LITERAL,
            &["--lifetime", "shared", "--project", "p"][..],
            "kept sandbox",
        ),
        (
            Caller::Root,
            r#""/workspace/inputs/**""#,
            &[],
            "denies all of",
        ),
        (Caller::Root, r#""/etc/*.conf""#, &[], "wildcards"),
        (Caller::User, WILD, &[], "locked"),
    ] {
        let Some(ground) = Ground::new(caller) else {
            return;
        };
        let locked = ground.work().join("locked");
        fs::create_dir(&locked).unwrap();
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o0)).unwrap();
        let output = ground.imports(paths, "").with(options).plain();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{paths} {options:?}");
        assert!(
            said.contains("rule `keys`") && said.contains(says),
            "{paths}: {said}"
        );
        fs::remove_dir(&locked).unwrap();
        ground.trial.end();
    }
}
