//! What allow rules and automatic reads cover is what runs for certain; what rules deny is not hidden.

use glovebox_model::{ApprovalMode, ByteString, PartialProfile, Permit, Program};
use glovebox_policy::{Config, DecisionContext, decide};

use crate::fixture::{call, run, silent};

const RULES: &str = r#"
[[rule]]
decision = "allow"
command = ["git status *", "rg *", "make check", "uv run pytest *"]
"#;
const DENY: &str = r#"
[[rule]]
decision = "deny"
command = "curl"
"#;

fn text(text: &str) -> ByteString {
    ByteString::try_from(text).unwrap()
}

fn argv(words: &[&str]) -> Program {
    Program::Argv {
        command: text(words[0]),
        args: words[1..].iter().map(|it| text(it)).collect(),
    }
}

fn decided(policy: &str, mode: ApprovalMode, program: Program) -> Permit {
    let config = Config::parse(policy, "policy.toml").unwrap();
    let mut call = call(PartialProfile {
        approval: Some(mode),
        ..silent()
    });
    call.program = program;
    let ids = call.ids.clone();
    let assessed = run(call, &[]).unwrap();
    let (rules, tools) = (config.rules_for(&ids), config.tools_for(&ids));
    let standing = DecisionContext {
        rules: &rules,
        tool: "run_command",
        tools: &tools,
        grants: &[],
        approvals: config.approvals(),
        simulate: false,
        backend: None,
        secrets: &[],
        network: config.network(),
    };
    decide(&assessed, &standing).permit
}

/// The script by itself, and in a shell that is named.
fn each(script: &str) -> [Program; 3] {
    let script_of_its_own = Program::Shell {
        script: text(script),
    };
    let in_sh = argv(&["sh", "-c", script]);
    [script_of_its_own, in_sh, argv(&["bash", "-lc", script])]
}

#[test]
fn an_allow_rule_covers_what_runs_for_certain_and_nothing_else() {
    const COVERED: &[&str] = &[
        "git status",
        "git status -s 'a b'",
        "git status; make check && rg foo | rg bar >/dev/null 2>&1",
        "# first\ngit status # then\n\nmake check",
        "sh -c 'git status'",
        "bash -ec 'git status' ",
        "timeout 5 env CI=1 nice sh -c \"git status\"",
        "/usr/bin/git status",
        "uv run pytest -q",
        "rg 'a$|b\\c`' HEAD~1",
    ];
    const ASKED: &[&str] = &[
        "git status; ls",
        "git push",
        "git status > x",
        "git status &",
        "git status $(rg x)",
        "git status `rg x`",
        "git status $x",
        "git status *",
        "git status ~",
        "git status {a,b}",
        "git status \\a",
        "git status \"$x\"",
        "A=1 git status",
        "{ git status; }",
        "(git status)",
        "if git status; then git status; fi",
        "git() { make; }; git status",
        "alias git=make\ngit status",
        "hash -p ./evil git; git status",
        "BASH_CMDS=(git ./evil); git status",
        "RANDOM='a[$(./evil)]'; git status",
        "[[ a || git status ]]",
        "(( git status ))",
        "git status &>/dev/null git status",
        "git status $'x'",
        "eval git status",
        "exec git status",
        "env -C sub git status",
        "env -u PATH git status",
        "env -i git status",
        "env FOO=1 git status",
        "sudo git status",
        "busybox sh -c 'git status'",
        "ksh -c 'git status'",
        "sh -ic 'git status'",
        "bash --rcfile x -c 'git status'",
        "bash -O extglob -c 'git status'",
        "sh -c 'git $1' sh status",
        "./l/../../usr/bin/git status",
        "/usr/bin/../bin/git status",
        "./git status",
        "cd sub; git status",
        "git status 2>&1x",
        "git status 12>/dev/null",
        "git status <<E\nE",
        "git status |& rg x",
        "! git status",
        "git status\r",
        "git status\u{a0}",
        "git status ;; make check",
        "git status && ",
        "flock x git status",
        "time -o x git status",
        "printf -v PATH x; git status",
    ];
    for (scripts, expected) in [(COVERED, Permit::Allow), (ASKED, Permit::Ask)] {
        for script in scripts {
            for program in each(script) {
                let found = decided(RULES, ApprovalMode::Manual, program.clone());
                assert_eq!(found, expected, "{program:?}");
            }
        }
    }
    for words in [
        &["sh", "-c", "git status"][..],
        &["/bin/bash", "-euo", "pipefail", "-c", "git status", "x"],
        &["env", "LC_ALL=C", "bash", "-lc", "git status"],
    ] {
        assert_eq!(
            decided(RULES, ApprovalMode::Manual, argv(words)),
            Permit::Allow,
            "{words:?}"
        );
    }
}

#[test]
fn reads_that_write_or_run_are_no_reads() {
    const READS: &[&str] = &[
        "ls -la sub",
        "cat x y | grep -n foo | head -3",
        "rg -n --hidden foo sub",
        "find . -name '*.rs' -type f -mtime -2",
        "tree -L 2 -I target",
        "file -b x",
        "cat x | tail -n 3 | wc -l 2>/dev/null",
        "timeout 5 cat x",
    ];
    const MORE: &[&str] = &[
        "git status",
        "git log",
        "python3 -c 'print(1)'",
        "python3 -c 'import json'",
        "node -e 1",
        "make",
        "pytest",
        "flock x ls",
        "logsave x ls",
        "ssh-agent -a x ls",
        "/lib64/ld-linux-x86-64.so.2 --library-path . /bin/ls",
        "ld.so --library-path . /bin/ls",
        "fakechroot ls",
        "proot -q x ls",
        "nohup ls",
        "sudo ls",
        "file --compile -m x",
        "file -C -m x",
        "file -z x",
        "less --log=x y",
        "less x",
        "more x",
        "ack x",
        "tree -R -H . -L 1",
        "tree -o x",
        "ag --pag=./x y",
        "ag --pager ./x y",
        "rg -z x",
        "rg --pre ./x y",
        "rg --hostname-bin=./x y",
        "rg $(cat x)",
        "rg foo *",
        "cat $x",
        "cat <${x}p/y",
        "cat < x",
        "cat /proc/1/environ",
        "cat ../../proc/self/environ",
        "find . -delete",
        "find . -exec ls ';'",
        "find . -fprint x",
        "find . -files0-from x",
        "sort -o x y",
        "sort --output=x y",
        "sort --compress-program=./x y",
        "sort -T . y",
        "uniq x y",
        "date -s 1",
        "diff --to-file=x -l y",
        "env -C sub ls",
        "env -u PATH ls",
        "env LD_PRELOAD=./x ls",
        "env FOO=1 ls",
        "time -o x ls",
        "printf -vPATH x",
        "read -aPATH x",
        "test -v 'a[$(x)]'",
        "tee x",
        "touch x",
        "sh x.sh",
        "./x",
        "ls &",
        "ls > x",
        "xargs ls",
        "env",
    ];
    for (scripts, expected) in [(READS, Permit::Allow), (MORE, Permit::Ask)] {
        for script in scripts {
            for program in each(script) {
                let found = decided("", ApprovalMode::Manual, program.clone());
                assert_eq!(found, expected, "{program:?}");
            }
        }
    }
}

#[test]
fn a_denied_command_is_not_hidden_by_what_shells_read_differently() {
    for (script, bash_too) in [
        ("[[ a || curl ]]", false),
        ("(( ./1 ))", false),
        ("ls &>/dev/null x", false),
        ("echo $'x'", false),
        (": $[ 1 ]", false),
        ("x+=/../y", false),
        ("RANDOM='a[$(x)]'", true),
        ("for OPTIND in 'a[1]'; do :; done", true),
        ("echo ${!b}", true),
        ("echo ${@:b}", true),
        ("echo ${y@\\\nP}", true),
        ("{PATH}</dev/null ls", true),
        ("coproc PATH { ls; }", true),
        ("printf -vPATH x", true),
        ("[[ a # ]]\n]]", true),
    ] {
        let sh = decided(DENY, ApprovalMode::Cowork, argv(&["sh", "-c", script]));
        assert!(sh > Permit::Allow, "{script:?} in sh: {sh:?}");
        let bash = decided(DENY, ApprovalMode::Cowork, argv(&["bash", "-c", script]));
        assert!(
            bash > Permit::Allow || !bash_too,
            "{script:?} in bash: {bash:?}"
        );
    }
    for script in [
        "for i in a b; do echo $i; done",
        "ls *.rs | wc -l",
        "x=1; echo ${x:-2} ${x%a}",
    ] {
        let plain = decided(DENY, ApprovalMode::Cowork, argv(&["sh", "-c", script]));
        assert_eq!(plain, Permit::Allow, "{script:?}");
    }
}
