//! Images made here, in every form.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::archives::tar::Tar;

pub(crate) const MACHINE: &str = if cfg!(target_arch = "x86_64") {
    "amd64"
} else {
    "arm64"
};
pub(crate) const OTHER: &str = if cfg!(target_arch = "x86_64") {
    "arm64"
} else {
    "amd64"
};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

#[derive(Debug, Clone, Copy)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

impl Packing {
    fn pack(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Plain => bytes.to_vec(),
            Self::Gzip => gzip(bytes),
            Self::Zstd => zstd::encode_all(bytes, 1).unwrap(),
        }
    }

    fn media_type(self) -> String {
        let ending = match self {
            Self::Plain => "",
            Self::Gzip => "+gzip",
            Self::Zstd => "+zstd",
        };
        format!("application/vnd.oci.image.layer.v1.tar{ending}")
    }
}

/// Two layers: the second changes, adds and takes away.
pub(crate) fn layers() -> Vec<Vec<u8>> {
    let first = Tar::new()
        .dir("bin/")
        .mode(b'0', "bin/sh", 0o4755, "#!shell")
        .file("etc/old", "old")
        .file("etc/gone", "gone")
        .file("opt/x/deep", "deep")
        .link("lib", "/usr/lib")
        .dir("usr/lib/")
        .mode(b'3', "dev/null", 0o666, "")
        .end();
    let second = Tar::new()
        .file("etc/old", "new")
        .file("etc/.wh.gone", "")
        .file("opt/kept", "kept")
        .file("opt/.wh..wh..opq", "")
        .hard("bin/same", "bin/sh")
        .file("lib/so", "library")
        .end();
    vec![first, second]
}

pub(crate) fn configuration(layers: &[Vec<u8>], architecture: &str) -> Value {
    let diff_ids: Vec<String> = layers
        .iter()
        .map(|it| format!("sha256:{}", sha256(it)))
        .collect();
    json!({
        "created": "2026-01-02T03:04:05Z",
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Env": ["PATH=/bin", "A=b"],
            "Cmd": ["/bin/sh"],
            "Entrypoint": null,
            "User": "1000",
            "WorkingDir": "/work",
        },
        "rootfs": { "type": "layers", "diff_ids": diff_ids },
    })
}

/// The files of an OCI layout.
#[derive(Debug, Clone, Default)]
pub(crate) struct Oci {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Oci {
    pub(crate) fn new(layers: &[Vec<u8>], packing: Packing) -> Self {
        let mut oci = Self::default();
        let manifest = oci.image(layers, packing, MACHINE);
        oci.index(&[manifest]);
        oci
    }

    /// Adds an image and gives its descriptor.
    pub(crate) fn image(
        &mut self,
        layers: &[Vec<u8>],
        packing: Packing,
        architecture: &str,
    ) -> Value {
        let listed: Vec<Value> = layers
            .iter()
            .map(|layer| self.blob(&packing.pack(layer), &packing.media_type()))
            .collect();
        let config = configuration(layers, architecture).to_string();
        let config = self.blob(
            config.as_bytes(),
            "application/vnd.oci.image.config.v1+json",
        );
        self.manifest(&config, &listed, architecture)
    }

    pub(crate) fn manifest(&mut self, config: &Value, layers: &[Value], on: &str) -> Value {
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": layers,
        });
        let mut descriptor = self.blob(manifest.to_string().as_bytes(), MANIFEST);
        descriptor["platform"] = json!({ "architecture": on, "os": "linux" });
        descriptor
    }

    pub(crate) fn blob(&mut self, bytes: &[u8], media_type: &str) -> Value {
        let digest = sha256(bytes);
        self.files
            .insert(format!("blobs/sha256/{digest}"), bytes.to_vec());
        json!({
            "mediaType": media_type,
            "digest": format!("sha256:{digest}"),
            "size": bytes.len(),
        })
    }

    pub(crate) fn nested(&mut self, manifests: &[Value]) -> Value {
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
        self.blob(index.to_string().as_bytes(), INDEX)
    }

    pub(crate) fn index(&mut self, manifests: &[Value]) {
        let index = json!({ "schemaVersion": 2, "manifests": manifests });
        self.files
            .insert("index.json".to_owned(), index.to_string().into_bytes());
        let version = json!({ "imageLayoutVersion": "1.0.0" });
        self.files
            .insert("oci-layout".to_owned(), version.to_string().into_bytes());
    }

    pub(crate) fn archive(&self) -> Vec<u8> {
        let mut tar = Tar::new().dir("./").dir("blobs/").dir("blobs/sha256/");
        for (name, contents) in &self.files {
            tar = tar.file(name, contents);
        }
        tar.end()
    }

    pub(crate) fn folder(&self, at: &Path) {
        for (name, contents) in &self.files {
            let path = at.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, contents).unwrap();
        }
    }
}

/// What older versions of `docker save` write, with the list at the end.
pub(crate) fn docker_save(layers: &[Vec<u8>]) -> Vec<u8> {
    let config = configuration(layers, MACHINE).to_string();
    let config_name = format!("{}.json", sha256(config.as_bytes()));
    let mut tar = Tar::new();
    let mut names = Vec::new();
    for layer in layers {
        let id = sha256(&[b"id", layer.as_slice()].concat());
        tar = tar
            .dir(&format!("{id}/"))
            .file(&format!("{id}/VERSION"), "1.0")
            .file(&format!("{id}/layer.tar"), layer);
        names.push(format!("{id}/layer.tar"));
    }
    let list = json!([{ "Config": config_name, "RepoTags": ["made:latest"], "Layers": names }]);
    tar.file(&config_name, config)
        .file("manifest.json", list.to_string())
        .end()
}
