import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Identity {
  key: string;
  cert: string;
}

/** A self-signed certificate for this machine; undefined without openssl. */
export function makeIdentity(): Identity | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'switchboard-tls-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:0.0.0.0'];
  try {
    const words = ['req', '-x509', ...curve, ...names, '-keyout', key, '-out', cert];
    execFileSync('openssl', words, { stdio: 'ignore' });
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
  } catch {
    return undefined;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
