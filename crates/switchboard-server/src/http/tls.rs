//! TLS from certificate and key files, which are read again when they change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

/// Interval of looking whether the files have changed.
const LOOK: Duration = Duration::from_secs(1);

/// The files of a TLS server, in PEM format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by the certificates that lead to a trusted one.
    pub certificate: PathBuf,
    /// The private key of the certificate, unencrypted.
    pub key: PathBuf,
}

/// Why files cannot be used for TLS.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}: {problem}", path.display())]
#[non_exhaustive]
pub struct TlsError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
}

/// Accepts TLS connections with the current files.
#[derive(Debug)]
pub(super) struct Tls {
    files: TlsFiles,
    state: Mutex<TlsState>,
}

struct TlsState {
    looked: Instant,
    stamps: [Option<SystemTime>; 2],
    config: Arc<ServerConfig>,
}

impl std::fmt::Debug for TlsState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("TlsState")
            .field("stamps", &self.stamps)
            .finish_non_exhaustive()
    }
}

impl Tls {
    pub(super) fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let stamps = files.stamps();
        let state = TlsState {
            looked: Instant::now(),
            stamps,
            config: files.config()?,
        };
        Ok(Self {
            files,
            state: Mutex::new(state),
        })
    }

    /// Accepts the next connection. Files that have become unusable leave the previous ones in force.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() >= LOOK {
            state.looked = Instant::now();
            let stamps = self.files.stamps();
            if stamps != state.stamps {
                state.stamps = stamps;
                match self.files.config() {
                    Ok(config) => {
                        tracing::info!("using the new TLS certificate");
                        state.config = config;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "keeping the previous TLS certificate");
                    }
                }
            }
        }
        TlsAcceptor::from(Arc::clone(&state.config))
    }
}

impl TlsFiles {
    fn stamps(&self) -> [Option<SystemTime>; 2] {
        let stamp = |path: &Path| std::fs::metadata(path).ok()?.modified().ok();
        [stamp(&self.certificate), stamp(&self.key)]
    }

    fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let failed = |path: &Path, problem: String| TlsError {
            path: path.to_owned(),
            problem,
        };
        let read =
            |path: &Path| std::fs::read(path).map_err(|error| failed(path, unreadable(&error)));
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(&read(&self.certificate)?).collect();
        let chain = chain
            .map_err(|error| failed(&self.certificate, format!("not a valid PEM file: {error}")))?;
        if chain.is_empty() {
            let problem = "does not contain a certificate in PEM format";
            return Err(failed(&self.certificate, problem.to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?);
        let key = key.map_err(|error| {
            let problem = match error {
                PemError::NoItemsFound => {
                    "does not contain an unencrypted private key in PEM format".to_owned()
                }
                error => format!("not a valid PEM file: {error}"),
            };
            failed(&self.key, problem)
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&self.certificate, error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, key);
        let mut config = config.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let certificate = self.certificate.display();
                failed(
                    &self.key,
                    format!("not the key of the certificate in {certificate}"),
                )
            }
            rustls::Error::InvalidCertificate(problem) => failed(
                &self.certificate,
                format!("the certificate is not valid: {problem:?}"),
            ),
            error => failed(&self.key, error.to_string()),
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot be read: {error}")
}
