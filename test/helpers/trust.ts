import { getCACertificates, setDefaultCACertificates } from 'node:tls';

/** Makes this process trust certificates of these authorities too, until it is disposed of. */
export function trust(...authorities: string[]): Disposable {
  const before = getCACertificates('default');
  setDefaultCACertificates([...before, ...authorities]);
  return { [Symbol.dispose]: () => setDefaultCACertificates(before) };
}
