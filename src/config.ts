/** What users configure: the servers, and the behaviour of the endpoint. */
export { isSecretName } from './config/credential-text.ts';
export {
  credentialsIn,
  MASK,
  maskCredentials,
  moveCredentials,
  unmaskCredentials,
} from './config/credentials.ts';
export type { ServerEntry } from './config/entry.ts';
export { type ImportedServers, importFile, importJsonOrToml, importText } from './config/import.ts';
export { loadConfiguration, readTextOrPipe } from './config/load.ts';
export type { Configuration } from './config/read.ts';
export { selfWarnings } from './config/self.ts';
export { checkStored, isEnabled } from './config/server.ts';
export type { ChatSettings, HostingSettings, ServerDefaults, Settings } from './config/settings.ts';
export { checkStart } from './config/startable.ts';
export { toolFilter } from './config/tool-patterns.ts';
export type { ServerConfig, ServerTransport } from './config/types.ts';
export {
  fillKnown,
  missingVariables,
  resolveVariables,
  unsetVariables,
  variablesIn,
  variablesOf,
} from './config/variables.ts';
export { watchConfiguration } from './config/watch.ts';
