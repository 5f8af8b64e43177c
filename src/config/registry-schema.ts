import { z } from 'zod';

const text = z.preprocess(
  (value) => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value),
  z.string({ error: 'must be a string' }),
);
const flag = z.boolean({ error: 'must be true or false' });

const input = z.object({
  description: z.string().optional(),
  isRequired: flag.optional(),
  isSecret: flag.optional(),
  format: z.string().optional(),
  value: text.optional(),
  default: text.optional(),
  placeholder: text.optional(),
  choices: z.array(text).optional(),
});
const inputs = z.record(z.string(), input).optional();
const filledInput = input.extend({ variables: inputs });
const namedInput = filledInput.extend({ name: z.string({ error: 'must be a string' }) });
const argument = filledInput.extend({
  type: z.enum(['positional', 'named'], { error: 'must be "positional" or "named"' }),
  name: z.string().optional(),
  valueHint: z.string().optional(),
});
const transport = z.object({
  type: z.string({ error: 'must be a string' }),
  url: z.string().optional(),
  headers: z.array(namedInput).optional(),
  variables: inputs,
});
const packageSchema = z.object({
  registryType: z.string({ error: 'must be a string; older forms of server.json are not read' }),
  identifier: z.string({ error: 'must be a string' }),
  version: z.string().optional(),
  runtimeHint: z.string().optional(),
  transport: transport.optional(),
  runtimeArguments: z.array(argument).default([]),
  packageArguments: z.array(argument).default([]),
  environmentVariables: z.array(namedInput).default([]),
});
/** The parts of the MCP registry's `server.json` that we read, in the version of 2025-12-11 and compatible ones. */
export const registrySchema = z.object({
  name: z.string(),
  description: z.string().optional(),
  packages: z.array(packageSchema).default([]),
  remotes: z.array(transport).default([]),
});

export type RegistryInput = z.infer<typeof filledInput>;
export type RegistryArgument = z.infer<typeof argument>;
export type RegistryPackage = z.infer<typeof packageSchema>;
export type RegistryRemote = z.infer<typeof transport>;
