/** What a client does before its first request: open a session, or check that none is needed. */
import { protocolVersion } from './eras.ts';
import { HttpConnection, headerOf } from './http-connection.ts';
import { clientCapabilities, clientInfo, modernRequest, postRequest, type Target } from './requests.ts';
import { resultOf, WrongAnswer } from './results.ts';
import { Unavailable } from './starting.ts';

const GREETING_ID = 1;

/** Resolves with the headers for all requests of the new session. */
export async function openSession(target: Target): Promise<string> {
  const connection = await HttpConnection.open(target.port);
  try {
    return await shakeHands(target, connection);
  } finally {
    connection.destroy();
  }
}

async function shakeHands(target: Target, connection: HttpConnection): Promise<string> {
  const params = {
    protocolVersion: protocolVersion.legacy,
    capabilities: clientCapabilities,
    clientInfo,
  };
  const initialize = { jsonrpc: '2.0', id: GREETING_ID, method: 'initialize', params };
  const answer = await connection.exchange(postRequest(target, target.path, JSON.stringify(initialize)));
  const result = resultOf(target, answer, GREETING_ID);
  const sessionId = headerOf(answer.head, 'mcp-session-id');
  const sessionHeaders =
    (sessionId === undefined ? '' : `Mcp-Session-Id: ${sessionId}\r\n`) +
    `MCP-Protocol-Version: ${String(result.protocolVersion)}\r\n`;
  const initialized = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' });
  const accepted = await connection.exchange(postRequest(target, target.path, initialized, sessionHeaders));
  if (accepted.status !== 202) throw new WrongAnswer(target, 'the notification was rejected', accepted);
  return sessionHeaders;
}

/** Throws if the peer supports only sessions, as older builds of Switchboard do. */
export async function expectModern(target: Target): Promise<void> {
  const modern: Target = { ...target, protocol: 'modern' };
  const connection = await HttpConnection.open(target.port);
  try {
    const answer = await connection.exchange(modernRequest(modern, 'server/discover', {})(GREETING_ID));
    if (answer.status >= 400 && answer.status < 500)
      throw new Unavailable(`does not speak ${protocolVersion.modern}`);
    const { supportedVersions } = resultOf(modern, answer, GREETING_ID);
    if (!Array.isArray(supportedVersions) || !supportedVersions.includes(protocolVersion.modern))
      throw new WrongAnswer(modern, `expected support for ${protocolVersion.modern}`, answer);
  } finally {
    connection.destroy();
  }
}
