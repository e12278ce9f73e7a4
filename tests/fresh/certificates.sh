# shellcheck shell=bash
# certificates.sh: to be sourced. Access to package registries behind a proxy with a certificate of its own.

# Let the root file system $1 trust the CA certificates that were added to this machine.
trust_certificates_of_this_machine() {
    if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
        cp /usr/local/share/ca-certificates/*.crt "$1/usr/local/share/ca-certificates/"
        chroot "$1" update-ca-certificates >/dev/null 2>&1
    fi
}
