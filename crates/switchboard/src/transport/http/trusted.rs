//! Trusts certificates named in a server's entry: authorities, and certificates that servers present themselves.
//!
//! Handles one case that the standard verifier cannot express. A self-signed certificate made with the usual commands
//! declares itself an authority, and the verifier rejects an authority as a server certificate, even a trusted one. If
//! the server presents exactly a certificate named in the entry, that objection is waived; its name, dates and proof of
//! the key are still checked.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// The verifier's error for an authority used as a server certificate.
const AUTHORITY_AS_SERVER: &str = "CaUsedAsEndEntity";

/// Trusts what the inner verifier trusts, and servers that present a named certificate.
#[derive(Debug)]
pub(super) struct Trusted<V> {
    pub(super) below: V,
    pub(super) named: Vec<CertificateDer<'static>>,
}

/// Whether a certificate was rejected only because it declares itself an authority. Dates are checked before that.
pub(super) fn is_authority_as_server(error: &CertificateError) -> bool {
    let CertificateError::Other(other) = error else {
        return false;
    };
    other.0.to_string() == AUTHORITY_AS_SERVER
}

impl<V: ServerCertVerifier> ServerCertVerifier for Trusted<V> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.below.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(Error::InvalidCertificate(error))
                if is_authority_as_server(&error) && self.named.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.below
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.below
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.below.supported_verify_schemes()
    }
}
