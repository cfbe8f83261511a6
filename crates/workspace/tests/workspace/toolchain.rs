//! Fake homes, hostile ones too, and the toolchains of this machine when it has any.

// The makers of fake homes are not test functions themselves.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use glovebox_model::Code;
use glovebox_workspace::toolchain::{
    Downloads, Host, Kind, Mode, Mount, Request, Shape, Toolchains, Wanted, detect,
    hint_for_missing,
};

/// What no mount may ever hold. Planted in every fake home.
const SECRETS: &[&str] = &[
    ".ssh/id_ed25519",
    ".gnupg/key",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".kube/config",
    ".npmrc",
    ".pypirc",
    ".netrc",
    ".cache/pip/x",
    ".cargo/credentials.toml",
    ".cargo/config.toml",
    ".cargo/git/db/private/config",
    ".cargo/registry/index/private.example-1/config.json",
    ".rustup/settings-secret",
    ".pyenv/secret",
    ".pyenv/versions/3.12.1/pip.conf",
    ".pyenv/versions/3.12.1/envs/other/secret",
    ".nvm/versions/node/v20.1.0/etc/npmrc",
    ".nvm/secret",
    "miniconda3/.condarc",
    "miniconda3/envs/other/lib/secret",
    "miniconda3/pkgs/secret",
    "miniconda3/conda-meta/history",
    ".sdkman/candidates/maven/3.9.6/conf/settings.xml",
    ".local/bin/private-script",
    ".local/share/keyrings/login",
    ".local/share/uv/tools/ruff/uv-receipt.toml",
    ".local/share/uv/python/secret",
    ".bun/install/cache/secret",
    "go/pkg/mod/private/secret",
    "go/src/secret",
    "other-project/secret",
];

struct Fake {
    _temp: tempfile::TempDir,
    base: PathBuf,
    host: Host,
}

impl Fake {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let fake = Self {
            host: Host {
                home: Some(base.join("home")),
                path: OsString::from("/usr/local/bin:/usr/bin:/bin"),
                state_dir: Some(base.join("home/.local/state/glovebox")),
                opt: base.join("opt"),
                linuxbrew: base.join("linuxbrew/.linuxbrew"),
                ..Host::new(base.join("home/code/app"))
            },
            _temp: temp,
            base,
        };
        fs::create_dir_all(&fake.host.cwd).unwrap();
        for secret in SECRETS {
            fake.write(secret, "secret");
        }
        fake
    }

    fn home(&self, path: &str) -> PathBuf {
        // Joined to an absolute path, the fake home would be the real machine.
        assert!(Path::new(path).is_relative(), "{path}");
        self.base.join("home").join(path)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let file = self.home(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    fn project(&self, path: &str, text: &str) -> PathBuf {
        self.write(&format!("code/app/{path}"), text)
    }

    fn program(&self, path: &str) -> PathBuf {
        let file = self.write(path, "#!/bin/sh\n");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    fn link(&self, target: impl AsRef<Path>, path: &str) {
        let file = self.home(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        symlink(target, file).unwrap();
    }

    fn path(&mut self, dirs: &[&str]) {
        let dirs: Vec<PathBuf> = dirs.iter().map(|dir| self.home(dir)).collect();
        let dirs = dirs.into_iter().chain(["/usr/bin".into(), "/bin".into()]);
        self.host.path = std::env::join_paths(dirs).unwrap();
    }

    fn env(&mut self, name: &str, value: impl AsRef<OsStr>) {
        assert!(Host::ENV.contains(&name), "{name} is never read");
        self.host
            .env
            .insert(name.to_owned(), value.as_ref().to_owned());
    }

    fn pyenv(&self, versions: &[&str]) {
        for version in versions {
            self.program(&format!(".pyenv/versions/{version}/bin/python3"));
            self.write(&format!(".pyenv/versions/{version}/lib/os.py"), "");
        }
        self.program(".pyenv/shims/python3");
    }

    fn rustup(&self, toolchains: &[&str]) {
        for toolchain in toolchains {
            self.program(&format!(".rustup/toolchains/{toolchain}/bin/cargo"));
        }
        self.program(".cargo/bin/rustup");
        self.link("rustup", ".cargo/bin/cargo");
        self.write(
            ".rustup/settings.toml",
            "version = \"12\"\ndefault_toolchain = \"stable-x86_64-unknown-linux-gnu\"\n\
             default_host_triple = \"x86_64-unknown-linux-gnu\"\n[overrides]\n",
        );
    }

    fn venv(&self, prefix: &str, base_bin: &Path) {
        let config = format!("home = {}\nversion = 3.12.1\n", base_bin.display());
        self.write(&format!("{prefix}/pyvenv.cfg"), &config);
        self.program(&format!("{prefix}/bin/pytest"));
        self.write(&format!("{prefix}/lib/x.py"), "");
        self.link(base_bin.join("python3"), &format!("{prefix}/bin/python"));
    }

    fn run(&self, mode: Mode) -> glovebox_model::Result<Toolchains> {
        self.run_command(mode, "bash")
    }

    fn run_command(&self, mode: Mode, command: &str) -> glovebox_model::Result<Toolchains> {
        let request = Request {
            command: command.into(),
            mode,
            downloads: Downloads::Impossible,
        };
        let found = detect(&self.host, &request)?;
        self.check(&found);
        Ok(found)
    }

    fn auto(&self) -> Toolchains {
        self.run(Mode::Auto).unwrap()
    }

    fn by_path(&self, path: impl AsRef<Path>) -> glovebox_model::Result<Toolchains> {
        self.run(Mode::Named(vec![Wanted::Path(path.as_ref().to_owned())]))
    }

    fn by_kind(&self, kind: Kind) -> glovebox_model::Result<Toolchains> {
        self.run(Mode::Named(vec![Wanted::Kind(kind)]))
    }

    /// What holds for every answer.
    fn check(&self, found: &Toolchains) {
        let home = self.home("");
        for mount in &found.mounts {
            assert_eq!(mount.host.canonicalize().unwrap(), mount.host, "{mount:?}");
            assert!(mount.guest.is_absolute(), "{mount:?}");
            assert!(!home.starts_with(&mount.host), "{mount:?}");
            assert!(!home.starts_with(&mount.guest), "{mount:?}");
            assert_eq!(mount.host.is_dir(), mount.shape == Shape::Directory);
            for secret in SECRETS {
                let secret = self.home(secret).canonicalize().unwrap();
                assert!(!secret.starts_with(&mount.host), "{secret:?} in {mount:?}");
            }
        }
        for (at, mount) in found.mounts.iter().enumerate() {
            for other in &found.mounts[at + 1..] {
                assert!(
                    !other.guest.starts_with(&mount.guest)
                        && !mount.guest.starts_with(&other.guest),
                    "{mount:?} and {other:?}"
                );
            }
        }
        for link in &found.links {
            assert!(sees(found, &link.target) || link.target.starts_with("/usr"));
            let inside = |mount: &Mount| link.guest.starts_with(&mount.guest);
            assert!(!found.mounts.iter().any(inside), "{link:?}");
        }
        for dir in &found.path {
            assert!(
                found
                    .mounts
                    .iter()
                    .any(|mount| dir.starts_with(&mount.guest)
                        || mount.shape == Shape::File && mount.guest.parent() == Some(dir))
                    || found
                        .links
                        .iter()
                        .any(|link| link.guest.parent() == Some(dir)),
                "{dir:?} is in PATH and not there: {found:?}"
            );
        }
    }

    fn assert_mounted(&self, found: &Toolchains, paths: &[&str]) {
        for path in paths {
            assert!(sees(found, &self.home(path)), "{path}: {found:#?}");
        }
    }
}

fn sees(found: &Toolchains, guest: &Path) -> bool {
    let covers = |mount: &Mount| {
        let below = guest.strip_prefix(&mount.guest).ok();
        below.is_some_and(|below| mount.host.join(below).exists() || mount.host.is_file())
    };
    found.mounts.iter().any(covers) || found.links.iter().any(|link| link.guest == guest)
}

fn homes(fake: &Fake, dirs: &[&str]) -> Vec<PathBuf> {
    dirs.iter().map(|dir| fake.home(dir)).collect()
}

#[test]
fn nothing_is_mounted_for_a_path_of_the_system() {
    let fake = Fake::new();
    assert_eq!(fake.auto(), Toolchains::default());
}

#[test]
fn off_mounts_nothing_whatever_is_active() {
    let mut fake = Fake::new();
    fake.pyenv(&["3.12.1"]);
    fake.path(&[".pyenv/versions/3.12.1/bin"]);
    assert_eq!(fake.run(Mode::Off).unwrap(), Toolchains::default());
}

#[test]
fn pyenv_shims_become_the_selected_version() {
    let mut fake = Fake::new();
    fake.pyenv(&["3.9.18", "3.12.1", "3.11.7"]);
    fake.write(".pyenv/version", "3.9.18\n");
    fake.path(&[".pyenv/shims", ".pyenv/bin"]);

    let found = fake.auto();
    assert_eq!(found.path, homes(&fake, &[".pyenv/versions/3.9.18/bin"]));
    fake.assert_mounted(&found, &[".pyenv/versions/3.9.18/bin/python3"]);
    assert!(!sees(&found, &fake.home(".pyenv/shims/python3")));

    fake.project(".python-version", "# why\n3.12.1\nsystem\n");
    assert_eq!(
        fake.auto().path,
        homes(&fake, &[".pyenv/versions/3.12.1/bin"])
    );

    fake.env("PYENV_VERSION", "3.11:3.9.18");
    assert_eq!(
        fake.auto().path,
        homes(
            &fake,
            &[".pyenv/versions/3.11.7/bin", ".pyenv/versions/3.9.18/bin"]
        )
    );
}

#[test]
fn a_version_that_is_not_installed_is_a_note() {
    let mut fake = Fake::new();
    fake.pyenv(&["3.12.1"]);
    fake.project(".python-version", "3.14.0\n");
    fake.path(&[".pyenv/shims"]);
    let found = fake.auto();
    assert!(found.mounts.is_empty());
    assert!(found.notes[0].contains("3.14.0"), "{:?}", found.notes);
}

#[test]
fn rustup_proxies_become_the_selected_toolchain() {
    let mut fake = Fake::new();
    let triple = "x86_64-unknown-linux-gnu";
    let names = ["stable", "nightly", "1.80.0"].map(|name| format!("{name}-{triple}"));
    fake.rustup(&[&names[0], &names[1], &names[2]]);
    fake.write(".cargo/registry/cache/index.crates.io-1949/a.crate", "");
    fake.write(".cargo/registry/index/index.crates.io-1949/config.json", "");
    fake.path(&[".cargo/bin"]);
    let bins = |fake: &Fake, name: &str| {
        let own = format!(".rustup/toolchains/{name}-{triple}/bin");
        homes(fake, &[&own, ".cargo/bin"])
    };

    let found = fake.auto();
    assert_eq!(found.path, bins(&fake, "stable"));
    fake.assert_mounted(
        &found,
        &[".cargo/registry/cache/index.crates.io-1949/a.crate"],
    );
    let cargo_home = fake.home(".cargo").to_str().unwrap().to_owned();
    assert!(found.env.contains(&("CARGO_HOME".into(), cargo_home)));

    fake.project("rust-toolchain.toml", "[toolchain]\nchannel = \"1.80.0\"\n");
    assert_eq!(fake.auto().path, bins(&fake, "1.80.0"));
    fake.env("RUSTUP_TOOLCHAIN", "nightly");
    assert_eq!(fake.auto().path, bins(&fake, "nightly"));
}

#[test]
fn cargo_may_write_its_own_home_when_it_can_download() {
    let mut fake = Fake::new();
    fake.rustup(&["stable-x86_64-unknown-linux-gnu"]);
    fake.write(".cargo/registry/cache/index.crates.io-1949/a.crate", "");
    fake.path(&[".cargo/bin"]);
    let request = Request {
        command: "cargo".into(),
        mode: Mode::Auto,
        downloads: Downloads::Possible,
    };
    let found = detect(&fake.host, &request).unwrap();
    assert_eq!(found.env, []);
    assert!(!sees(&found, &fake.home(".cargo/registry/cache")));
}

#[test]
fn an_active_environment_comes_with_its_python() {
    let mut fake = Fake::new();
    fake.pyenv(&["3.12.1"]);
    let base = fake.home(".pyenv/versions/3.12.1/bin");
    fake.venv("code/app/.venv", &base);
    fake.env("VIRTUAL_ENV", fake.home("code/app/.venv"));
    fake.path(&["code/app/.venv/bin", ".pyenv/shims"]);
    fake.write(".pyenv/version", "3.12.1");

    let found = fake.auto();
    assert_eq!(
        found.path,
        homes(&fake, &["code/app/.venv/bin", ".pyenv/versions/3.12.1/bin"])
    );
    fake.assert_mounted(
        &found,
        &[
            "code/app/.venv/pyvenv.cfg",
            "code/app/.venv/bin/pytest",
            ".pyenv/versions/3.12.1/lib/os.py",
        ],
    );
    let venv = fake.home("code/app/.venv").to_str().unwrap().to_owned();
    assert_eq!(found.env, [("VIRTUAL_ENV".to_owned(), venv)]);
}

#[test]
fn an_environment_that_is_not_active_is_seen_and_not_in_path() {
    let fake = Fake::new();
    fake.pyenv(&["3.12.1"]);
    fake.venv("code/app/.venv", &fake.home(".pyenv/versions/3.12.1/bin"));
    let found = fake.auto();
    assert_eq!(found.path, Vec::<PathBuf>::new());
    fake.assert_mounted(
        &found,
        &["code/app/.venv/bin/pytest", ".pyenv/versions/3.12.1/bin"],
    );
}

#[test]
fn an_environment_elsewhere_is_shown_without_its_settings() {
    let mut fake = Fake::new();
    fake.pyenv(&["3.12.1"]);
    for prefix in [".virtualenvs/app", ".cache/pypoetry/virtualenvs/app-py3.12"] {
        fake.venv(prefix, &fake.home(".pyenv/versions/3.12.1/bin"));
        let secret = fake.write(&format!("{prefix}/pip.conf"), "password");
        fake.env("VIRTUAL_ENV", fake.home(prefix));
        let found = fake.auto();
        assert_eq!(found.path, [fake.home(prefix).join("bin")], "{found:#?}");
        assert!(sees(&found, &fake.home(prefix).join("pyvenv.cfg")));
        assert!(!sees(&found, &secret));
    }
}

#[test]
fn a_command_given_by_path_brings_its_environment() {
    let fake = Fake::new();
    fake.pyenv(&["3.12.1"]);
    fake.venv("code/app/env311", &fake.home(".pyenv/versions/3.12.1/bin"));
    let found = fake.run_command(Mode::Auto, "./env311/bin/pytest").unwrap();
    fake.assert_mounted(
        &found,
        &["code/app/env311/bin", ".pyenv/versions/3.12.1/lib"],
    );
    let python = fake.home(".pyenv/versions/3.12.1/bin/python3");
    let found = fake
        .run_command(Mode::Auto, python.to_str().unwrap())
        .unwrap();
    fake.assert_mounted(&found, &[".pyenv/versions/3.12.1/lib"]);
}

#[test]
fn a_python_of_uv_is_found_through_links() {
    let mut fake = Fake::new();
    let full = ".local/share/uv/python/cpython-3.12.4-linux-x86_64-gnu";
    fake.program(&format!("{full}/bin/python3.12"));
    fake.write(&format!("{full}/lib/os.py"), "");
    fake.link(
        "cpython-3.12.4-linux-x86_64-gnu",
        ".local/share/uv/python/cpython-3.12-linux-x86_64-gnu",
    );
    let minor = ".local/share/uv/python/cpython-3.12-linux-x86_64-gnu";
    fake.link(
        fake.home(minor).join("bin/python3.12"),
        ".local/bin/python3.12",
    );
    fake.path(&[".local/bin"]);
    let found = fake.auto();
    assert_eq!(found.path, homes(&fake, &[".local/bin"]));
    let python = fake.home(full).join("bin/python3.12");
    assert_eq!(found.links.len(), 1);
    assert_eq!(found.links[0].target, python);
    fake.assert_mounted(&found, &[&format!("{full}/lib/os.py")]);
    assert!(!sees(&found, &fake.home(".local/bin/private-script")));

    fake.venv("code/app/.venv", &fake.home(minor).join("bin"));
    let found = fake.auto();
    let both = [minor, full].map(|dir| format!("{dir}/lib/os.py"));
    fake.assert_mounted(&found, &[&both[0], &both[1]]);
}

#[test]
fn tools_of_uv_and_pipx_are_single_programs() {
    let mut fake = Fake::new();
    for (tool, place) in [("ruff", "uv/tools"), ("black", "pipx/venvs")] {
        let prefix = format!(".local/share/{place}/{tool}");
        fake.venv(&prefix, Path::new("/usr/bin"));
        fake.program(&format!("{prefix}/bin/{tool}"));
        fake.link(
            fake.home(&prefix).join("bin").join(tool),
            &format!(".local/bin/{tool}"),
        );
    }
    fake.path(&[".local/bin"]);
    let found = fake.auto();
    assert_eq!(found.path, homes(&fake, &[".local/bin"]));
    fake.assert_mounted(
        &found,
        &[
            ".local/bin/ruff",
            ".local/bin/black",
            ".local/share/uv/tools/ruff/pyvenv.cfg",
        ],
    );
    let pipx = fake.by_kind(Kind::Pipx).unwrap();
    assert!(sees(&pipx, &fake.home(".local/bin/black")));
    assert!(!sees(&pipx, &fake.home(".local/bin/ruff")));
}

#[test]
fn an_environment_made_through_a_link_keeps_the_link() {
    let fake = Fake::new();
    let full = ".local/share/uv/python/cpython-3.12.4-linux-x86_64-gnu";
    let python = fake.program(&format!("{full}/bin/python3.12"));
    fake.link(&python, ".local/bin/python3");
    fake.venv("code/app/.venv", &fake.home(".local/bin"));
    let found = fake.auto();
    fake.assert_mounted(&found, &[".local/bin/python3", &format!("{full}/bin")]);
    assert_eq!(found.path, Vec::<PathBuf>::new());
}

#[test]
fn a_conda_environment_is_shown_without_the_others() {
    let mut fake = Fake::new();
    for prefix in ["miniconda3", "miniconda3/envs/app"] {
        fake.program(&format!("{prefix}/bin/python"));
        fake.write(&format!("{prefix}/lib/os.py"), "");
        fake.write(&format!("{prefix}/conda-meta/history"), "");
    }
    fake.env("CONDA_PREFIX", fake.home("miniconda3/envs/app"));
    fake.env("CONDA_DEFAULT_ENV", "app");
    fake.path(&["miniconda3/envs/app/bin", "miniconda3/condabin"]);
    let found = fake.auto();
    assert_eq!(found.path, homes(&fake, &["miniconda3/envs/app/bin"]));
    assert!(!sees(&found, &fake.home("miniconda3/lib/os.py")));
    assert!(
        found
            .env
            .contains(&("CONDA_DEFAULT_ENV".into(), "app".into()))
    );

    fake.host.env.clear();
    fake.path(&["miniconda3/bin"]);
    let found = fake.auto();
    fake.assert_mounted(&found, &["miniconda3/lib/os.py"]);
    assert!(!sees(&found, &fake.home("miniconda3/envs/app/lib/os.py")));
    let named = fake.by_path(fake.home("miniconda3")).unwrap();
    assert_eq!(named.mounts, found.mounts);
}

#[test]
fn node_is_found_by_nvm_fnm_and_volta() {
    let mut fake = Fake::new();
    let nvm = ".nvm/versions/node/v20.1.0";
    fake.program(&format!("{nvm}/bin/node"));
    fake.path(&[&format!("{nvm}/bin")]);
    assert_eq!(fake.auto().path, [fake.home(nvm).join("bin")]);

    let fnm = ".local/share/fnm/node-versions/v18.2.0/installation";
    fake.program(&format!("{fnm}/bin/node"));
    fake.link(fake.home(fnm), "run/fnm_multishells/1_2");
    fake.path(&["run/fnm_multishells/1_2/bin"]);
    assert_eq!(fake.auto().path, [fake.home(fnm).join("bin")]);

    for version in ["20.9.0", "16.0.0"] {
        fake.program(&format!(".volta/tools/image/node/{version}/bin/node"));
    }
    fake.program(".volta/bin/volta-shim");
    fake.link("volta-shim", ".volta/bin/node");
    fake.write(
        ".volta/tools/user/platform.json",
        "{\"node\": {\"runtime\": \"20.9.0\", \"npm\": null}}",
    );
    fake.path(&[".volta/bin"]);
    let volta = |version: &str| format!(".volta/tools/image/node/{version}/bin");
    assert_eq!(fake.auto().path, homes(&fake, &[&volta("20.9.0")]));
    fake.project("package.json", r#"{"volta": {"node": "16.0.0"}}"#);
    assert_eq!(fake.auto().path, homes(&fake, &[&volta("16.0.0")]));
}

#[test]
fn nvm_by_name_takes_the_version_of_the_project() {
    let fake = Fake::new();
    for version in ["v8.17.0", "v18.20.1", "v20.1.0"] {
        fake.program(&format!(".nvm/versions/node/{version}/bin/node"));
    }
    let bin = |version: &str| homes(&fake, &[&format!(".nvm/versions/node/{version}/bin")]);
    assert_eq!(fake.by_kind(Kind::Nvm).unwrap().path, bin("v20.1.0"));
    fake.project(".nvmrc", "18\n");
    assert_eq!(fake.by_kind(Kind::Nvm).unwrap().path, bin("v18.20.1"));
    fake.project(".nvmrc", "../../../..\n");
    assert_eq!(fake.by_kind(Kind::Nvm).unwrap().path, bin("v20.1.0"));
}

#[test]
fn asdf_and_mise_shims_become_the_installed_versions() {
    let mut fake = Fake::new();
    fake.program(".asdf/installs/nodejs/20.1.0/bin/node");
    fake.program(".asdf/installs/golang/1.22.0/go/bin/go");
    fake.program(".asdf/shims/node");
    fake.write(".tool-versions", "nodejs 18.0.0\ngolang 1.22.0\n");
    fake.project(".tool-versions", "nodejs 20.1.0 system # lts\n");
    fake.path(&[".asdf/shims"]);
    assert_eq!(
        fake.auto().path,
        homes(
            &fake,
            &[
                ".asdf/installs/nodejs/20.1.0/bin",
                ".asdf/installs/golang/1.22.0/go/bin"
            ]
        )
    );

    fake.program(".local/share/mise/installs/python/3.12.1/bin/python");
    fake.link("./3.12.1", ".local/share/mise/installs/python/3.12");
    fake.program(".local/share/mise/shims/python");
    fs::remove_file(fake.home("code/app/.tool-versions")).unwrap();
    fs::remove_file(fake.home(".tool-versions")).unwrap();
    fake.project("mise.toml", "[env]\nA = '1'\n[tools]\npython = \"3.12\"\n");
    fake.path(&[".local/share/mise/shims"]);
    let found = fake.auto();
    assert_eq!(
        found.path,
        homes(&fake, &[".local/share/mise/installs/python/3.12/bin"])
    );
}

#[test]
fn java_of_sdkman_is_whole_and_maven_without_its_settings() {
    let mut fake = Fake::new();
    fake.program(".sdkman/candidates/java/21.0.1-tem/bin/java");
    fake.link("21.0.1-tem", ".sdkman/candidates/java/current");
    fake.program(".sdkman/candidates/maven/3.9.6/bin/mvn");
    fake.link(
        fake.home(".sdkman/candidates/maven/3.9.6"),
        ".sdkman/candidates/maven/current",
    );
    let current = fake.home(".sdkman/candidates/java/current");
    fake.env("JAVA_HOME", &current);
    let bins = [
        ".sdkman/candidates/java/current/bin",
        ".sdkman/candidates/maven/current/bin",
    ];
    fake.path(&bins);
    let found = fake.auto();
    assert_eq!(found.path, homes(&fake, &bins));
    assert_eq!(
        found.env,
        [("JAVA_HOME".into(), current.to_str().unwrap().to_owned())]
    );
}

#[test]
fn homebrew_is_shown_without_etc_and_var() {
    let mut fake = Fake::new();
    let brew = fake.host.linuxbrew.clone();
    for dir in ["bin", "Cellar/jq/1.7/bin", "var/postgres", "etc/app", "lib"] {
        fs::create_dir_all(brew.join(dir)).unwrap();
    }
    fake.host.path = brew.join("bin").into_os_string();
    let found = fake.auto();
    assert_eq!(found.path, [brew.join("bin")]);
    assert!(sees(&found, &brew.join("Cellar/jq/1.7/bin")));
    assert!(!sees(&found, &brew.join("var/postgres")));
    assert!(!sees(&found, &brew.join("etc/app")));
}

#[test]
fn go_deno_bun_and_opt_are_found_in_path() {
    let mut fake = Fake::new();
    fake.program("sdk/go1.22/bin/go");
    fake.write("sdk/go1.22/VERSION", "go1.22");
    fake.write("sdk/go1.22/src/runtime/x.go", "");
    fake.program("go/bin/gopls");
    fake.program(".deno/bin/deno");
    fake.program(".bun/bin/bun");
    let dirs = ["sdk/go1.22/bin", "go/bin", ".deno/bin", ".bun/bin"];
    fake.path(&dirs);
    assert_eq!(fake.auto().path, homes(&fake, &dirs));

    let opt = fake.host.opt.clone();
    fs::create_dir_all(opt.join("app/bin")).unwrap();
    fs::create_dir_all(opt.join("app/etc")).unwrap();
    fs::create_dir_all(opt.join("bin")).unwrap();
    fake.host.path = std::env::join_paths([opt.join("bin"), opt.join("app/bin")]).unwrap();
    let found = fake.auto();
    assert_eq!(found.path, [opt.join("app/bin")]);
    assert!(!sees(&found, &opt.join("app/etc")));
}

#[test]
fn a_manager_that_is_a_link_is_seen_under_both_names() {
    let mut fake = Fake::new();
    fake.program("data/pyenv/versions/3.12.1/bin/python3");
    fake.host
        .env
        .insert("PYENV_ROOT".into(), fake.home("link").into_os_string());
    fake.link(fake.home("data/pyenv"), "link");
    fake.path(&["link/versions/3.12.1/bin"]);
    let found = fake.auto();
    assert_eq!(found.path, homes(&fake, &["link/versions/3.12.1/bin"]));
    fake.assert_mounted(
        &found,
        &["link/versions/3.12.1/bin", "data/pyenv/versions/3.12.1/bin"],
    );
}

// Hostile homes and workspaces.

#[test]
fn a_version_that_links_to_the_home_is_refused() {
    for target in ["/", "..", "../..", "../../.ssh", "../../other-project"] {
        let mut fake = Fake::new();
        fs::create_dir_all(fake.home(".pyenv/shims")).unwrap();
        fake.link(target, ".pyenv/versions/evil");
        fs::create_dir_all(fake.home("bin")).unwrap();
        fs::create_dir_all(fake.home("lib")).unwrap();
        fake.project(".python-version", "evil");
        fake.path(&[".pyenv/shims"]);
        let found = fake.auto();
        assert!(found.mounts.is_empty(), "{target}: {found:#?}");
        assert!(!found.notes.is_empty(), "{target}");
    }
}

#[test]
fn a_manager_that_links_to_the_home_is_refused() {
    let mut fake = Fake::new();
    fake.program("versions/3.12.1/bin/python3");
    fake.program("shims/python3");
    fake.env("PYENV_ROOT", fake.home("me"));
    fake.link(fake.home(""), "me");
    fake.env("PYENV_VERSION", "3.12.1");
    fake.path(&["me/shims"]);
    assert_eq!(fake.auto().mounts, []);
    for (variable, kind) in [
        ("CARGO_HOME", Kind::Rustup),
        ("DENO_INSTALL", Kind::Deno),
        ("BUN_INSTALL", Kind::Bun),
    ] {
        fake.program("bin/x");
        fake.env(variable, fake.home(""));
        assert!(fake.by_kind(kind).is_err(), "{kind}");
    }
}

#[test]
fn a_version_file_cannot_leave_the_versions() {
    for text in [
        "../../..",
        "..",
        ".",
        "/",
        "/etc",
        "3.12.1/../../..",
        "3.12.1/envs/other",
        "-x",
        "\u{1b}[31mred",
        "",
    ] {
        let mut fake = Fake::new();
        fake.pyenv(&["3.12.1"]);
        fake.rustup(&["stable-x86_64-unknown-linux-gnu"]);
        fs::create_dir_all(fake.home(".asdf/shims")).unwrap();
        fs::create_dir_all(fake.home(".asdf/installs/python")).unwrap();
        fs::create_dir_all(fake.home(".volta/bin")).unwrap();
        fake.project(".python-version", text);
        fake.project("rust-toolchain", text);
        fake.project(".tool-versions", &format!("python {text}\n{text} 1\n"));
        fake.project(
            "package.json",
            &format!("{{\"volta\": {{\"node\": \"{text}\"}}}}"),
        );
        fake.path(&[".pyenv/shims", ".asdf/shims", ".volta/bin"]);
        let found = fake.auto();
        assert!(found.mounts.is_empty(), "{text:?}: {found:#?}");
        let quiet = |note: &String| !note.chars().any(char::is_control);
        assert!(found.notes.iter().all(quiet), "{:?}", found.notes);
    }
}

#[test]
fn a_toolchain_file_cannot_name_a_directory() {
    let mut fake = Fake::new();
    fake.rustup(&["stable-x86_64-unknown-linux-gnu"]);
    let elsewhere = fake.home("other-project");
    fake.project(
        "rust-toolchain.toml",
        &format!("[toolchain]\npath = \"{}\"\n", elsewhere.display()),
    );
    fake.path(&[".cargo/bin"]);
    let found = fake.auto();
    assert_eq!(found.path, homes(&fake, &[".cargo/bin"]));
    assert_eq!(found.notes.len(), 1);
}

#[test]
fn the_python_of_a_project_must_be_a_known_one() {
    let fake = Fake::new();
    fake.program("work-conda/bin/python");
    fake.write("work-conda/conda-meta/history", "");
    for (at, home) in [
        "/",
        "/etc",
        "/root",
        "relative",
        "",
        "HOME",
        "HOME/.ssh",
        "HOME/other-project",
        "HOME/.local/share/uv/python/../../../..",
        "HOME/.local/share/uv/python/../bin",
        "HOME/.pyenv/versions/../bin",
        "HOME/miniconda3/envs/other/../../bin",
        "HOME/work-conda/bin",
        "/usr/bin\rhome = /etc",
        "/usr/../etc",
    ]
    .iter()
    .enumerate()
    {
        let home = home.replace("HOME", fake.home("").to_str().unwrap());
        let prefix = format!("code/app/env{at}");
        fake.venv(&prefix, Path::new("/usr/bin"));
        fake.write(
            &format!("{prefix}/pyvenv.cfg"),
            &format!("x = 1\nhome = {home}\nhome = /etc\n"),
        );
        let command = format!("env{at}/bin/pytest");
        let found = fake.run_command(Mode::Auto, &command).unwrap();
        let hosts: Vec<&PathBuf> = found.mounts.iter().map(|mount| &mount.host).collect();
        assert_eq!(hosts, [&fake.home(&prefix)], "{home:?}");
        let quiet = |note: &String| !note.chars().any(char::is_control);
        assert!(found.notes.iter().all(quiet), "{:?}", found.notes);
    }
}

#[test]
fn a_link_in_the_workspace_does_not_lead_out_of_it() {
    let mut fake = Fake::new();
    fake.venv("elsewhere/env", Path::new("/usr/bin"));
    fake.program("elsewhere/conda/bin/python");
    fake.write("elsewhere/conda/conda-meta/history", "");
    fake.link(fake.home("elsewhere/env"), "code/app/.venv");
    fake.link(fake.home("elsewhere"), "code/app/deep");
    fake.link(fake.home("code/app/.venv"), "from-outside");

    assert_eq!(fake.auto().mounts, []);
    for active in ["code/app/.venv", "code/app/deep/env", "from-outside"] {
        fake.env("VIRTUAL_ENV", fake.home(active));
        let found = fake.auto();
        assert_eq!(found.mounts, [], "{active}");
        assert!(!found.notes.is_empty(), "{active}");
        assert!(fake.by_path(fake.home(active)).is_err(), "{active}");
    }
    fake.program("elsewhere/program");
    for named in [
        "deep/program",
        "deep/../elsewhere/program",
        "deep/../elsewhere/env",
    ] {
        let named = fake.home("code/app").join(named);
        assert!(named.exists());
        assert!(fake.by_path(&named).is_err(), "{named:?}");
    }
    fake.host.env.clear();
    fake.path(&[
        "code/app/deep/conda/bin",
        "code/app/deep/../elsewhere/conda/bin",
    ]);
    assert_eq!(fake.auto().mounts, []);
}

#[test]
fn a_part_of_a_prefix_does_not_lead_out_of_it() {
    let mut fake = Fake::new();
    fake.pyenv(&["3.12.1"]);
    fake.link(fake.home(".ssh"), ".pyenv/versions/3.12.1/share");
    fake.link("/", ".pyenv/versions/3.12.1/include");
    fake.link("..", ".pyenv/versions/3.12.1/lib64");
    fake.path(&[".pyenv/versions/3.12.1/bin"]);
    let found = fake.auto();
    assert!(sees(&found, &fake.home(".pyenv/versions/3.12.1/lib")));
    for part in ["share", "include", "lib64"] {
        let part = fake.home(".pyenv/versions/3.12.1").join(part);
        assert!(!sees(&found, &part), "{part:?}");
    }
}

#[test]
fn a_fifo_a_huge_file_or_a_link_is_no_version_file() {
    let mut fake = Fake::new();
    fake.pyenv(&["3.12.1"]);
    fake.rustup(&["stable-x86_64-unknown-linux-gnu"]);
    fake.write(".pyenv/version", "3.12.1");
    fake.path(&[".pyenv/shims", ".cargo/bin"]);
    let plain = fake.auto();
    assert_eq!(plain.path.len(), 3);

    let files = [".python-version", "rust-toolchain", "rust-toolchain.toml"];
    for file in files {
        let path = fake.home("code/app").join(file);
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
    }
    assert_eq!(fake.auto(), plain);
    for file in files {
        let path = fake.home("code/app").join(file);
        fs::remove_file(&path).unwrap();
        let huge = fs::File::create(&path).unwrap();
        huge.set_len(1 << 40).unwrap();
    }
    assert_eq!(fake.auto(), plain);
    fake.write("words", "secretword");
    for file in files {
        let path = fake.home("code/app").join(file);
        fs::remove_file(&path).unwrap();
        symlink(fake.home("words"), &path).unwrap();
    }
    assert_eq!(fake.auto(), plain);
    for file in files {
        let path = fake.home("code/app").join(file);
        fs::remove_file(&path).unwrap();
        fs::write(&path, b"\xff\xfe\0").unwrap();
    }
    assert_eq!(fake.auto(), plain);
}

#[test]
fn odd_entries_of_path_are_passed_over() {
    let mut fake = Fake::new();
    fake.pyenv(&["3.12.1"]);
    let good = fake.home(".pyenv/versions/3.12.1/bin");
    let mut path =
        b"::.:bin:../bin:/nowhere/at/all:/:/etc:/proc/self/cwd:\xff\xfe/bin:/\xff:".to_vec();
    path.extend(fake.home("").as_os_str().as_bytes());
    path.extend(b":/usr/../etc:\n:");
    path.extend(fake.home(".ssh").as_os_str().as_bytes());
    path.extend(b":");
    path.extend(good.as_os_str().as_bytes());
    path.extend(b":");
    path.extend(good.as_os_str().as_bytes());
    path.extend(b"/../bin/.");
    fake.host.path = OsString::from(OsStr::from_bytes(&path));
    assert_eq!(fake.auto().path, [good]);
}

#[test]
fn a_home_that_is_the_root_or_absent_is_no_home() {
    for home in [None, Some("/"), Some(""), Some("relative")] {
        let mut fake = Fake::new();
        fake.pyenv(&["3.12.1"]);
        fake.path(&[".pyenv/shims", ".local/bin", ".ssh"]);
        fake.host.home = home.map(PathBuf::from);
        assert_eq!(fake.auto().mounts, [], "{home:?}");
    }
}

#[test]
fn an_environment_that_is_the_home_or_around_the_workspace_is_refused() {
    for prefix in [".", "code"] {
        let mut fake = Fake::new();
        fake.venv(prefix, Path::new("/usr/bin"));
        fake.env("VIRTUAL_ENV", fake.home(prefix));
        assert_eq!(fake.auto().mounts, [], "{prefix}");
        let error = fake.by_path(fake.home(prefix)).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{prefix}");
    }
}

#[test]
fn names_by_path_that_hold_more_are_errors() {
    let fake = Fake::new();
    fs::create_dir_all(fake.home(".local/state/glovebox/projects")).unwrap();
    fs::create_dir_all(fake.home("a:b")).unwrap();
    fake.link(fake.home(".ssh"), "tools");
    fake.link(fake.home(""), "all");
    let mut paths: Vec<PathBuf> = [
        "/", "/etc", "/root", "/home", "/proc", "/var", "/tmp", "/etc/ssl",
    ]
    .iter()
    .map(PathBuf::from)
    .filter(|path| path.exists())
    .collect();
    paths.extend(homes(
        &fake,
        &[
            "",
            ".",
            "..",
            ".ssh",
            ".gnupg",
            ".aws",
            ".config",
            ".config/gh",
            ".docker",
            ".kube",
            ".cache",
            ".cargo/git",
            ".local",
            ".local/bin",
            ".local/share",
            ".local/state/glovebox",
            ".local/state/glovebox/projects",
            "code",
            "tools",
            "all",
            "a:b",
            "nowhere",
            ".npmrc",
            ".cargo/credentials.toml",
            "other-project/secret",
            "other-project/../.ssh",
        ],
    ));
    for path in paths {
        let error = fake.by_path(&path).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{path:?}");
        assert!(!error.hints.is_empty(), "{path:?}");
    }
}

#[test]
fn a_directory_or_a_program_by_path_is_shown_as_it_is() {
    let fake = Fake::new();
    fake.program("tools/zig/zig");
    fake.program("tools/node/bin/node");
    let script = fake.program(".local/bin/mine");
    let found = fake.by_path(fake.home("tools/zig")).unwrap();
    assert_eq!(found.path, homes(&fake, &["tools/zig"]));
    let found = fake.by_path(fake.home("tools/node")).unwrap();
    assert_eq!(found.path, homes(&fake, &["tools/node/bin"]));
    let found = fake.by_path(&script).unwrap();
    assert_eq!(found.path, homes(&fake, &[".local/bin"]));
    assert_eq!(found.mounts.len(), 1);
    assert_eq!(found.mounts[0].shape, Shape::File);
    let system = fake.by_path("/usr/bin").unwrap();
    assert_eq!((system.mounts, system.path), (vec![], vec![]));
}

#[test]
fn the_directory_of_a_manager_stands_for_the_manager() {
    let fake = Fake::new();
    fake.rustup(&["stable-x86_64-unknown-linux-gnu"]);
    let by_path = fake.by_path(fake.home(".cargo")).unwrap();
    let by_name = fake.by_kind(Kind::Rustup).unwrap();
    assert_eq!(by_path, by_name);
    assert_eq!(by_name.path.len(), 2);

    fake.pyenv(&["3.12.1"]);
    fake.program(".pyenv/bin/pyenv");
    fake.write(".pyenv/version", "3.12.1");
    let found = fake.by_path(fake.home(".pyenv")).unwrap();
    assert_eq!(found.path, homes(&fake, &[".pyenv/versions/3.12.1/bin"]));
}

#[test]
fn a_mount_inside_another_is_left_out() {
    let fake = Fake::new();
    fake.program("tools/zig/bin/zig");
    let both = ["tools/zig/bin", "tools/zig", "tools"].map(|dir| Wanted::Path(fake.home(dir)));
    let found = fake.run(Mode::Named(both.to_vec())).unwrap();
    assert_eq!(found.mounts.len(), 1);
    assert_eq!(found.mounts[0].host, fake.home("tools"));
}

#[test]
fn mixed_directories_that_link_to_each_other_come_to_an_end() {
    let mut fake = Fake::new();
    fake.program("bin/a");
    fake.program(".local/bin/b");
    fake.link(fake.home("bin/a"), ".local/bin/a");
    fake.link(fake.home(".local/bin/b"), "bin/b");
    fake.link("loop", "bin/loop");
    fake.path(&["bin", ".local/bin"]);
    assert_eq!(fake.auto(), Toolchains::default());
}

#[test]
fn programs_of_go_in_a_home_without_a_directory_of_their_own_are_refused() {
    let mut fake = Fake::new();
    fake.program("gobin/gopls");
    fake.env("GOBIN", fake.home("gobin"));
    fake.path(&["gobin"]);
    let found = fake.auto();
    assert_eq!(found.mounts, []);
    assert_eq!(found.notes.len(), 1);
}

#[test]
fn every_kind_that_is_absent_is_an_error_by_name() {
    let fake = Fake::new();
    let bare = Host {
        home: Some(fake.base.join("empty")),
        ..fake.host.clone()
    };
    for kind in Kind::ALL {
        let request = Request {
            command: "x".into(),
            mode: Mode::Named(vec![Wanted::Kind(*kind)]),
            downloads: Downloads::Possible,
        };
        let error = detect(&bare, &request).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{kind}");
    }
}

#[test]
fn only_what_is_named_is_shown() {
    let mut fake = Fake::new();
    fake.pyenv(&["3.12.1"]);
    fake.rustup(&["stable-x86_64-unknown-linux-gnu"]);
    fake.write(".pyenv/version", "3.12.1");
    fake.path(&[".cargo/bin", ".pyenv/shims"]);
    let found = fake.by_kind(Kind::Pyenv).unwrap();
    assert_eq!(found.path, homes(&fake, &[".pyenv/versions/3.12.1/bin"]));
    assert!(found.mounts.iter().all(|mount| mount.kind == Kind::Pyenv));
}

fn hint(fake: &Fake, command: &str, found: &Toolchains) -> Option<String> {
    hint_for_missing(OsStr::new(command), &fake.host, found, |path| {
        path.starts_with("/usr") || path.starts_with("/bin") || sees(found, path)
    })
}

#[test]
fn a_missing_command_says_which_flag_shows_it() {
    let mut fake = Fake::new();
    fake.pyenv(&["3.12.1"]);
    fake.write(".pyenv/version", "3.12.1");
    fake.program(".pyenv/shims/flask");
    fake.program("tools/zig/bin/zig");
    fake.program(".local/bin/mine");
    fake.program("code/app/node_modules/.bin/jest");
    fake.program(".config/hooks/hook");
    fake.link("/usr/bin/env", "links/envlink");
    fake.link("/usr/bin/env", "bin/env2");
    fake.path(&[
        ".pyenv/shims",
        "tools/zig/bin",
        ".local/bin",
        "code/app/node_modules/.bin",
        ".config/hooks",
        "links",
        "bin",
    ]);
    let off = fake.run(Mode::Off).unwrap();
    let auto = fake.auto();
    let says = |command: &str, found: &Toolchains, part: &str| {
        let sentence = hint(&fake, command, found).unwrap();
        assert!(sentence.contains(part), "{command}: {sentence}");
    };
    says("python3", &off, "`--toolchain auto` or `--toolchain pyenv`");
    assert_eq!(hint(&fake, "python3", &auto), None);
    says("flask", &auto, "the selected version does not have it");
    let zig = format!("`--toolchain {}`", fake.home("tools/zig").display());
    says("zig", &auto, &zig);
    let mine = format!("`--toolchain {}`", fake.home(".local/bin/mine").display());
    says("mine", &auto, &mine);
    says("jest", &auto, "`./node_modules/.bin/jest`");
    says("hook", &auto, "copy it into the workspace");
    says("envlink", &auto, "/usr/bin/env");
    says("env2", &off, "`--toolchain auto`");
    assert_eq!(hint(&fake, "env2", &auto), None);
    for nothing in ["env", "no-such-program", "", "/nowhere/x", "./x"] {
        assert_eq!(hint(&fake, nothing, &auto), None, "{nothing}");
    }
}

#[test]
fn what_a_hint_says_works() {
    let mut fake = Fake::new();
    fake.program("tools/zig/bin/zig");
    fake.program(".local/bin/mine");
    fake.path(&["tools/zig/bin", ".local/bin"]);
    for command in ["zig", "mine"] {
        let sentence = hint(&fake, command, &Toolchains::default()).unwrap();
        let path = sentence.split("--toolchain ").nth(1).unwrap();
        let found = fake.by_path(path.trim_end_matches('`')).unwrap();
        assert_eq!(hint(&fake, command, &found), None, "{sentence}");
    }
}

// The machine's own toolchains.

/// Runs a command with nothing but `/usr` and what was found, by bubblewrap.
fn in_sandbox(found: &Toolchains, work: &Path, script: &str) -> Option<std::process::Output> {
    let mut bwrap = Command::new("bwrap");
    bwrap.args(["--unshare-all", "--die-with-parent", "--clearenv"]);
    bwrap.args([
        "--ro-bind",
        "/usr",
        "/usr",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]);
    for dir in ["bin", "lib", "lib64", "sbin"] {
        bwrap.args(["--symlink", &format!("usr/{dir}"), &format!("/{dir}")]);
    }
    bwrap.args(["--tmpfs", "/tmp", "--dir", "/workspace"]);
    bwrap.arg("--bind").arg(work).arg("/workspace/work");
    bwrap.args(["--chdir", "/workspace/work", "--setenv", "HOME", "/tmp"]);
    for mount in &found.mounts {
        bwrap.arg("--ro-bind").arg(&mount.host).arg(&mount.guest);
    }
    for link in &found.links {
        bwrap.arg("--symlink").arg(&link.target).arg(&link.guest);
    }
    let mut path = found.path.clone();
    path.extend(["/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()]);
    bwrap
        .arg("--setenv")
        .arg("PATH")
        .arg(std::env::join_paths(path).unwrap());
    for (name, value) in &found.env {
        bwrap.args(["--setenv", name, value]);
    }
    match bwrap.args(["bash", "-c", script]).output() {
        Ok(output) if output.stderr.starts_with(b"bwrap: ") => {
            eprintln!("SKIPPED: {}", String::from_utf8_lossy(&output.stderr));
            None
        }
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("SKIPPED: no bubblewrap: {error}");
            None
        }
    }
}

fn real(work: &Path) -> (Host, Toolchains) {
    let host = Host::of_process(work, None);
    let request = Request {
        command: "bash".into(),
        mode: Mode::Auto,
        downloads: Downloads::Impossible,
    };
    let found = detect(&host, &request).unwrap();
    (host, found)
}

fn has(host: &Host, program: &str) -> bool {
    let found = std::env::split_paths(&host.path).any(|dir| dir.join(program).is_file());
    if !found {
        eprintln!("SKIPPED: no `{program}` on this machine");
    }
    found
}

#[test]
fn the_python_of_this_machine_runs_with_what_was_found() {
    let work = tempfile::tempdir().unwrap();
    let work = work.path().canonicalize().unwrap();
    let (host, found) = real(&work);
    if !has(&host, "python3") || !has(&host, "pip") {
        return;
    }
    let script = "python3 -c 'import ssl, json, sys; print(sys.version_info[:2])' && pip --version";
    let Some(output) = in_sandbox(&found, &work, script) else {
        return;
    };
    assert!(output.status.success(), "{output:?} {found:#?}");
    let outside = Command::new("python3")
        .args(["-c", "import sys; print(sys.version_info[:2])"])
        .current_dir(&work)
        .output()
        .unwrap();
    let inside = String::from_utf8_lossy(&output.stdout).into_owned();
    let outside = String::from_utf8_lossy(&outside.stdout).into_owned();
    assert!(inside.starts_with(&outside), "{inside} {outside}");
}

#[test]
fn an_environment_made_here_runs_with_what_was_found() {
    let work = tempfile::tempdir().unwrap();
    let work = work.path().canonicalize().unwrap();
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(&work)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no python3 that makes environments");
        return;
    }
    let script = work.join(".venv/bin/hello");
    let text = format!(
        "#!{}/.venv/bin/python\nimport sys; print(sys.prefix)\n",
        work.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();

    let (_, found) = real(&work);
    let Some(output) = in_sandbox(&found, &work, ".venv/bin/hello") else {
        return;
    };
    assert!(output.status.success(), "{output:?} {found:#?}");
    let prefix = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(PathBuf::from(prefix), work.join(".venv"));
}

#[test]
fn the_rust_of_this_machine_builds_with_what_was_found() {
    let work = tempfile::tempdir().unwrap();
    let work = work.path().canonicalize().unwrap();
    let (host, found) = real(&work);
    if !has(&host, "cargo") || !has(&host, "rustc") {
        return;
    }
    fs::create_dir(work.join("src")).unwrap();
    fs::write(work.join("src/lib.rs"), "pub fn f() {}\n").unwrap();
    let manifest = "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    fs::write(work.join("Cargo.toml"), manifest).unwrap();
    let script = "set -e; rustc --version; cargo check --quiet; command -v cargo";
    let Some(output) = in_sandbox(&found, &work, script) else {
        return;
    };
    assert!(output.status.success(), "{output:?} {found:#?}");
}

#[test]
fn nothing_private_of_this_machine_is_in_what_was_found() {
    let work = tempfile::tempdir().unwrap();
    let work = work.path().canonicalize().unwrap();
    let (host, found) = real(&work);
    let Some(home) = host.home.and_then(|home| home.canonicalize().ok()) else {
        eprintln!("SKIPPED: no home");
        return;
    };
    for private in [
        "",
        ".ssh",
        ".npmrc",
        ".config",
        ".gitconfig",
        ".cargo/git",
        ".cache",
    ] {
        let private = home.join(private);
        for mount in &found.mounts {
            assert!(!private.starts_with(&mount.host), "{mount:?}");
        }
    }
}
