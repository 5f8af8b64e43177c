/** What users configure: the servers behind the endpoint, and how it behaves. */
export { isSecretName } from './config/credential-text.ts';
export {
  credentialsIn,
  MASK,
  maskCredentials,
  moveCredentials,
  unmaskCredentials,
} from './config/credentials.ts';
export { type ImportedServers, importFile, importJsonOrToml, importText } from './config/import.ts';
export { loadConfiguration, readTextOrPipe } from './config/load.ts';
export type { ServerEntry } from './config/schema.ts';
export { selfWarnings } from './config/self.ts';
export { checkStored, isEnabled } from './config/server.ts';
export { checkStart } from './config/startable.ts';
export { toolFilter } from './config/tool-patterns.ts';
export type {
  ChatSettings,
  Configuration,
  HostingSettings,
  ServerConfig,
  ServerDefaults,
  ServerTransport,
  Settings,
} from './config/types.ts';
export {
  fillKnown,
  missingVariables,
  resolveVariables,
  unsetVariables,
  variablesIn,
  variablesOf,
} from './config/variables.ts';
export { watchConfiguration } from './config/watch.ts';
