# Switchboard with PostgreSQL. How to run it: docs/how-to/run-as-a-service.md
ARG NODE=node:26-slim

FROM ${NODE} AS build
WORKDIR /app
COPY . .
RUN npm ci --no-audit --no-fund
RUN npm run build

FROM ${NODE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
COPY tools tools
RUN npm ci --omit=dev --no-audit --no-fund

FROM ${NODE}
WORKDIR /app
COPY package.json LICENSE README.md CHANGELOG.md ./
COPY bin bin
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
RUN ln -s /app/bin/switchboard.js /usr/local/bin/switchboard \
  && install -d -o node -g node -m 0700 /var/lib/switchboard

ENV NODE_ENV=production SWITCHBOARD_HOME=/var/lib/switchboard
# Persistent data: projects, secrets, the token and the database.
VOLUME /var/lib/switchboard
USER node
ENTRYPOINT ["node", "--initial-heap-size=128", "/app/bin/switchboard.js"]
CMD ["up", "--config", "/etc/switchboard/mcp.json"]
